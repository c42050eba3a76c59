-- a table with 1500 rows

local audit = require "audit"

local rows = {}

for row = 1, 1500 do
    local total = row * 17 % 1000

    audit.note("row " .. row .. " has the total " .. total)
    rows[row] = "<tr><td>" .. row .. "<td>" .. total
end

ngx.header.content_type = "text/html"
ngx.say("<!DOCTYPE html><title>Report</title><body><table>",
        table.concat(rows, "\n"), "</table><p>", audit.close(),
        " notes</body>")
