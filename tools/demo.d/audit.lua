-- notes what a request did, for a log that nobody reads

local _M = {}

local trail, notes = "", 0


function _M.note(text)
    trail = trail .. os.date("%H:%M:%S ") .. text .. "\n"
    notes = notes + select(2, trail:gsub("\n$", ""))
end


function _M.close()
    local n = notes

    trail, notes = "", 0

    return n
end


return _M
