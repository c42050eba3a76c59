-- counts, sorts and prints the words of a text, with a wait for an upstream

local function count(text)
    local counts = {}

    for word in ngx.re.gmatch(text, "[a-z]+", "oij") do
        local w = string.lower(word[0])
        counts[w] = (counts[w] or 0) + 1
    end

    return counts
end


local function rank(counts)
    local words = {}

    for w in pairs(counts) do
        words[#words + 1] = w
    end

    table.sort(words, function(a, b)
        return counts[a] > counts[b] or counts[a] == counts[b] and a < b
    end)

    return words
end


local f = io.open(ngx.var.document_root .. "/text.txt")
local text = f:read("*a")
f:close()

local counts = count(text)
local words = rank(counts)

ngx.location.capture("/upstream/text.txt")

ngx.say(#words, " words, ", ngx.md5(text))

for _, w in ipairs(words) do
    ngx.say(counts[w], " ", w)
end

ngx.print(text)
