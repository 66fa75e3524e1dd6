-- Admits a call under all of its rules or under none, in one step that nothing can come between.
--
-- Requests and tokens are buckets that hold a minute's worth and refill steadily: {v: what is left, t: when}. Streams
-- are leases with an end, so a process that died gives its places back by itself.
--
-- KEYS: for each rule its requests, tokens and streams key.
-- ARGV: mode (admit | peek | finish | renew), lease id, lease ms, requests, tokens, then for each rule its three
--   limits, -1 for none. finish gives back: requests and tokens are added (tokens below 0 charge more), the lease ends.
-- Returns {failed rule or 0, failed kind (1 requests, 2 tokens, 3 streams), wait ms, then for each rule what is left of
--   requests and tokens, -1 for none}.
local mode, lease, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted = {tonumber(ARGV[4]), tonumber(ARGV[5])}
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local rules = #KEYS / 3
local failed, kind, wait = 0, 0, 0
local levels = {}

local function limit(rule, which) return tonumber(ARGV[5 + (rule - 1) * 3 + which]) end

local function level(key, cap)
  local held = redis.call('HMGET', key, 'v', 't')
  if not held[1] then return cap end
  return math.min(cap, tonumber(held[1]) + math.max(0, now - tonumber(held[2])) * cap / 60000)
end

for rule = 1, rules do
  for which = 1, 2 do
    local cap = limit(rule, which)
    local left = cap < 0 and -1 or level(KEYS[(rule - 1) * 3 + which], cap)
    levels[#levels + 1] = left
    -- What is larger than a whole minute's worth is let through when nothing else was.
    local need = math.min(wanted[which], cap)
    if mode == 'admit' and cap >= 0 and (left < need or cap == 0) and failed == 0 then
      failed, kind = rule, which
      wait = cap == 0 and 60000 or math.ceil((need - left) * 60000 / cap)
    end
  end
  local most = limit(rule, 3)
  if mode == 'admit' and most >= 0 and lease ~= '' then
    local key = KEYS[(rule - 1) * 3 + 3]
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    if redis.call('ZCARD', key) >= most and failed == 0 then
      failed, kind, wait = rule, 3, 1000
    end
  end
end

if failed == 0 and mode ~= 'peek' then
  for rule = 1, rules do
    for which = 1, 2 do
      local cap, at = limit(rule, which), (rule - 1) * 2 + which
      local delta = mode == 'admit' and -wanted[which] or mode == 'finish' and wanted[which] or 0
      if cap >= 0 and delta ~= 0 then
        local key = KEYS[(rule - 1) * 3 + which]
        -- Never further below nothing than a minute makes good.
        levels[at] = math.max(-cap, math.min(cap, levels[at] + delta))
        redis.call('HSET', key, 'v', levels[at], 't', now)
        redis.call('PEXPIRE', key, 180000)
      end
    end
    if limit(rule, 3) >= 0 and lease ~= '' then
      local key = KEYS[(rule - 1) * 3 + 3]
      if mode == 'finish' then
        redis.call('ZREM', key, lease)
      else
        -- A lease that has run out meanwhile is not renewed into somebody else's place.
        local how = mode == 'renew' and 'XX' or 'NX'
        redis.call('ZADD', key, how, now + lease_ms, lease)
        redis.call('PEXPIRE', key, lease_ms + 60000)
      end
    end
  end
end

local answer = {failed, kind, wait}
for at = 1, #levels do answer[#answer + 1] = math.floor(levels[at]) end
return answer
