-- The health of Kite's objects for Argo CD: KiteVirtualMachine, KiteUser, KitePlatform.
--
-- The answers are those of kstatus, so that Argo CD, Flux, Helm and kubectl wait agree,
-- but for what stands still because a person wants it so: that is Suspended. Written for
-- Lua 5.1 and its base library, which is what Argo CD offers to a script of argocd-cm.

local metadata = obj.metadata or {}
local status = obj.status or {}

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function answer(health, message)
  return { status = health, message = message or "" }
end

local function is(type, value)
  local condition = conditions[type]
  return condition ~= nil and condition.status == value
end

-- What is said by a condition that is not True for this reason.
local function said_by(type, reason)
  local condition = conditions[type]
  if condition ~= nil and condition.status ~= "True" and condition.reason == reason then
    return condition.message
  end
end

if metadata.deletionTimestamp ~= nil then
  local message = "being deleted"
  if conditions.Deleting ~= nil then
    message = conditions.Deleting.message
  elseif conditions.Ready ~= nil and conditions.Ready.status ~= "True" then
    message = conditions.Ready.message
  end
  for _, finalizer in ipairs(metadata.finalizers or {}) do
    message = message .. "; held by " .. finalizer
  end
  return answer("Progressing", message)
end

-- By its specification, before the object itself goes: nobody looks at its generation any more.
if is("Deleting", "True") then
  return answer("Progressing", conditions.Deleting.message)
end

-- The API server starts with -1, so a fresh object is never taken for a finished one.
local observed = tonumber(status.observedGeneration)
if observed == nil or observed ~= tonumber(metadata.generation) then
  return answer("Progressing", "the controllers have not looked at this generation yet")
end

if is("Stalled", "True") then
  return answer("Degraded", conditions.Stalled.message)
end
if obj.kind == "KitePlatform" then
  if is("Accepted", "False") then
    return answer("Degraded", conditions.Accepted.message)
  end
  if is("Accepted", "True") then
    return answer("Healthy", conditions.Accepted.message)
  end
  return answer("Progressing", "the settings have not been judged yet")
end
local waits_for_a_person = said_by("ResourcesApplied", "ReconciliationPaused") or said_by("Ready", "Paused")
if waits_for_a_person ~= nil then
  return answer("Suspended", waits_for_a_person)
end
if is("Reconciling", "True") then
  return answer("Progressing", conditions.Reconciling.message)
end
if is("Ready", "True") then
  return answer("Healthy", conditions.Ready.message)
end
if conditions.Ready ~= nil then
  return answer("Progressing", conditions.Ready.message)
end
return answer("Progressing", "the controllers have said nothing yet")
