/**
 * Tools for application keys (SPECIFICATION.md §2.1, §2.2): list them, masked, read the activity of
 * one, suspend one and resume it.
 */
import { z } from 'zod'
import { didYouMean } from '../../../schema/rules/names.ts'
import type { Plan } from '../../changes/change.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import { activityOf, keyActivityView } from '../../observe/causes/key-activity.ts'
import { periodInput, periodOf } from '../../observe/causes/state-history.ts'
import {
  type KeyPlanDeps,
  planResumption,
  planRevocation,
  planSuspension,
  isOwnKey,
  refuseOwnKey,
} from '../../resources/key-plans.ts'
import { keyView } from '../../resources/key-view.ts'
import {
  defineChange,
  defineTool,
  endOfPage,
  type ToolUse,
  MAX_ROWS,
  pageInput,
  pageOutput,
  sliceOf,
  time,
} from './tool.ts'
import { type AppKey, type KeyKind, keyStateAt, keyStates } from '../../auth/app-key.ts'
import type { KeyFilter } from '../../auth/key-store.ts'
import { timeOrNull } from '../../http/view-fields.ts'

const sbcKey = z.object({
  uuid: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  key_prefix: z.string().describe('The first 12 characters of the token; not unique.'),
  scopes: z.array(z.string()),
  rate_limit_rpm: z.int().describe('Requests per minute that it may make.'),
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
  request_count: z.int(),
  is_active: z.boolean(),
  state: z.enum(keyStates),
  owner_username: z.string().nullable(),
  tenant_slug: z.string().nullable(),
  created_at: time,
})

export const listSbcApiKeys = defineTool({
  name: 'list_sbc_api_keys',
  title: 'List SBC API keys',
  description:
    'Lists the application keys of the SBC (tokens start with sbc_live_). With scopes, ' +
    'expiry, usage and limit of requests. ' +
    'Use it to audit keys, and to find the uuid for suspend_api_key.',
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    search: text(100)
      .optional()
      .describe('Part of the key name or of the owner. Defaults to all keys.'),
    ...pageInput(MAX_ROWS, MAX_ROWS),
  }),
  output: z.object({ apiKeys: z.array(sbcKey), ...pageOutput }),
  async run({ search, ...page }, { keys, now, principal: { tenantId, domain } }) {
    const filter = {
      tenantId,
      domain,
      search,
      searchIn: ['name', 'owner_username'],
      kinds: ['sbc'],
    } as const
    const found = await keys.list(filter, now(), sliceOf(page))
    const apiKeys = found.keys.map((key) => ({
      ...keyView(key, now()),
      scopes: [...key.scopeLabels],
    }))
    return { apiKeys, ...endOfPage(page, apiKeys.length, found.total) }
  },
})

/** The kinds that are not SBC keys. */
const kinds: readonly KeyKind[] = ['pbx', 'billing']

const tenantKey = z.object({
  id: z.int().describe('Internal id, for get_api_key_status.'),
  uuid: z.string(),
  kind: z.enum(['pbx', 'billing']),
  name: z.string(),
  description: z.string().nullable(),
  key_prefix: z.string(),
  masked_key: z.string().describe('The token with its secret part masked.'),
  scopes: z.array(z.string()),
  tenant_scope: z.enum(['global', 'tenant']),
  tenant_slug: z.string().nullable(),
  domain: z.string().nullable(),
  rate_limit_rpm: z.int().describe('Requests per minute that it may make.'),
  is_active: z.boolean(),
  state: z.enum(keyStates),
  created_at: time,
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
  request_count: z.int(),
})

export const listApiKeys = defineTool({
  name: 'list_api_keys',
  title: 'List tenant API keys',
  description:
    'Lists the application keys of tenants (tokens start with ak_ or bill_). With masked ' +
    'secrets. ' +
    'list_sbc_api_keys lists SBC keys.',
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    search: text(100)
      .optional()
      .describe('Part of the name or of the description. Defaults to all keys.'),
    ...pageInput(MAX_ROWS, MAX_ROWS),
  }),
  output: z.object({ apiKeys: z.array(tenantKey), ...pageOutput }),
  async run({ search, ...page }, { keys, now, principal: { tenantId, domain } }) {
    const searchIn = ['name', 'description'] as const
    const filter = { tenantId, domain, search, searchIn, kinds }
    const found = await keys.list(filter, now(), sliceOf(page))
    const apiKeys = found.keys.map((key) => tenantKeyView(key, now()))
    return { apiKeys, ...endOfPage(page, apiKeys.length, found.total) }
  },
})

export const getApiKeyStatus = defineTool({
  name: 'get_api_key_status',
  title: 'Get the status of a tenant API key',
  description:
    'Returns the state of one tenant key. Prefix, scopes, creation, expiry and last use. ' +
    'Give key_id (from list_api_keys) or the exact name. Prefer list_api_keys, which shows ' +
    'the same of several.',
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    key_id: z.int().min(1).optional().describe('Internal id of the key.'),
    name: text(100).min(1).optional().describe('Exact name of the key.'),
  }),
  output: tenantKey,
  async run({ key_id: id, name }, use) {
    if (id === undefined && name === undefined)
      throw badRequest('Give key_id or name; list_api_keys shows both')
    const key = await theKey({ id, name, kinds }, use, {
      none: 'No tenant key matches. list_api_keys lists the keys that you can access.',
      several: 'Several keys have this name. Call again with the key_id from list_api_keys',
    })
    return tenantKeyView(key, use.now())
  },
})

function tenantKeyView(key: AppKey, now: number) {
  const { kind, tenant_scope, ...view } = keyView(key, now)
  return {
    ...view,
    id: key.id,
    scopes: [...key.scopeLabels],
    kind: kind === 'billing' ? ('billing' as const) : ('pbx' as const),
    tenant_scope: tenant_scope === 'global' ? ('global' as const) : ('tenant' as const),
    masked_key: `${key.keyPrefix}${'*'.repeat(8)}`,
  }
}

const identifier = text(100).min(1).describe('The uuid of the key, or its exact name.')
const confirmSelf = z
  .boolean()
  .default(false)
  .describe('True: it may be the key of this request, which is rejected afterwards.')

export const revokeSbcApiKey = defineChange({
  name: 'revoke_sbc_api_key',
  title: 'Revoke an SBC API key',
  description:
    'Revokes one SBC application key permanently. Its requests are rejected from now on, ' +
    'and this cannot be undone. ' +
    'Prefer suspend_api_key, which can be undone. Repeating it has no effect. ' +
    'It may be the key of this request: a warning says so. ' +
    'Look up the key with list_sbc_api_keys first, do a dry run, and have a person confirm it.',
  effect: 'destroys',
  reason: 'optional',
  scopes: ['keys:write'],
  input: z.strictObject({
    identifier,
    confirm_self: z
      .boolean()
      .optional()
      .describe('False: the key of this request is not revoked, but refused.'),
  }),
  output: z.object({
    message: z.string(),
    warning: z.string().nullable().describe('Null: it is another key than that of this request.'),
    uuid: z.string(),
    name: z.string(),
    key_prefix: z.string(),
    is_active: z.boolean(),
    revoked_at: time.nullable(),
    already_revoked: z.boolean(),
  }),
  async plan({ identifier: wanted, confirm_self: isConfirmed }, use) {
    const key = await changeable(wanted, 'list_sbc_api_keys', use, 'sbc')
    // SPECIFICATION.md §3.1: the tool revokes any key that is found.
    refuseOwnKey(key, use.principal, isConfirmed ?? true)
    const isOwn = isOwnKey(key, use.principal)
    const wasRevoked = key.revokedAt !== null
    return shown(await planRevocation(key, use), (now, isDone) => ({
      warning: isOwn
        ? `This request uses this very key: its next request ${isDone ? 'is' : 'would be'} ` +
          'rejected.'
        : null,
      message: wasRevoked
        ? 'The key was already revoked.'
        : `The key ${isDone ? 'is' : 'would be'} permanently revoked.`,
      ...nameOf(now),
      is_active: now.isActive,
      revoked_at: timeOrNull(now.revokedAt),
      already_revoked: wasRevoked,
    }))
  },
})

const keyAfter = z.object({
  uuid: z.string(),
  name: z.string(),
  key_prefix: z.string(),
  state: z.enum(keyStates),
  suspended_at: time.nullable(),
})

export const suspendApiKey = defineChange({
  name: 'suspend_api_key',
  title: 'Suspend an API key',
  description:
    'Takes one application key out of use. Its requests are rejected from now on, on all ' +
    'instances. ' +
    'resume_api_key, undo_change or the end of duration brings it back. The first step for ' +
    'a key that may have leaked. ' +
    'list_sbc_api_keys and list_api_keys show keys.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['keys:write'],
  input: z.strictObject({ identifier, confirm_self: confirmSelf }),
  output: keyAfter,
  async plan({ identifier: wanted, confirm_self: isConfirmed }, use) {
    const key = await changeable(wanted, 'list_sbc_api_keys or list_api_keys', use)
    refuseOwnKey(key, use.principal, isConfirmed)
    return shown(await planSuspension(key, use.expiresAt, use), (now) => afterView(now, use))
  },
})

export const resumeApiKey = defineChange({
  name: 'resume_api_key',
  title: 'Resume an API key',
  description:
    'Takes a suspended application key into use again. A key that an administrator made ' +
    'inactive stays so. ' +
    'Who did not suspend the key needs all that the key has.',
  effect: 'changes',
  reason: 'required',
  scopes: ['keys:write'],
  input: z.strictObject({ identifier }),
  output: keyAfter,
  async plan({ identifier: wanted }, use) {
    const key = await changeable(wanted, 'list_sbc_api_keys or list_api_keys', use)
    return shown(await planResumption(key, use), (now) => afterView(now, use))
  },
})

/** The plan, with a view of the key as the tool's own fields. */
const shown = <O>(
  plan: Plan<{ readonly key: AppKey }>,
  view: (key: AppKey, isDone: boolean) => O,
): Plan<O> => ({
  ...plan,
  preview: view(plan.preview.key, false),
  apply: async () => view((await plan.apply()).key, true),
})

const nameOf = ({ uuid, name, keyPrefix }: AppKey) => ({ uuid, name, key_prefix: keyPrefix })

const afterView = (key: AppKey, { now }: Pick<KeyPlanDeps, 'now'>) => ({
  ...nameOf(key),
  state: keyStateAt(key, now()),
  suspended_at: timeOrNull(key.suspendedAt),
})

/** A key by its uuid or its exact name, for a tool that changes it. */
const changeable = (wanted: string, lists: string, use: ToolUse, only?: 'sbc'): Promise<AppKey> =>
  theKey({ uuid: wanted, name: wanted, kinds: only && [only] }, use, {
    none:
      `No ${only === undefined ? 'key' : 'SBC key'} has this uuid or exact name. ${lists} shows ` +
      'the keys that you can access.',
    several:
      'Several keys have this name. Nothing was revoked or changed: call again with the uuid ' +
      `from ${lists}`,
  })

export const getKeyActivity = defineTool({
  name: 'get_key_activity',
  title: 'Activity of a key',
  description:
    'Tells what an application key did. Addresses, routes, refused attempts, changes, ' +
    'requests per hour. ' +
    'Use it when a key may have leaked; suspend_api_key stops a key until resume_api_key.',
  effect: 'reads',
  readsMuch: true,
  scopes: ['keys:read', 'audit:read'],
  input: z.strictObject({
    uuid: text(100).min(1).describe('Of the key, or its exact name.'),
    ...periodInput,
    limit: z.int().min(1).max(50).default(10).describe('Of each list.'),
  }),
  output: keyActivityView,
  async run({ uuid, start, end, limit }, use) {
    const { store, now } = use
    const period = periodOf({ start, end }, now(), { longestDays: 31 })
    const key = await theKey({ uuid, name: uuid }, use, {
      none: 'No key has this uuid or name. list_sbc_api_keys and list_api_keys show both',
      several: 'Several keys have this name: call again with the uuid',
      suggests: false,
    })
    return activityOf(store, key, { ...period, limit }, now())
  },
})

interface KeyReference extends Pick<KeyFilter, 'id' | 'name' | 'kinds'> {
  readonly uuid?: string
}

interface Refusals {
  readonly none: string
  readonly several: string
  /** False: `none` does not name keys that are called nearly so. */
  readonly suggests?: boolean
}

/** Names of these keys are compared with a wrong one. */
const MAX_COMPARED = 500

/** The one key that is meant; a name can match keys of several tenants. */
async function theKey(
  { uuid, ...reference }: KeyReference,
  { keys, now, principal: { tenantId, domain } }: ToolUse,
  { none, several, suggests = true }: Refusals,
): Promise<AppKey> {
  const { name, kinds } = reference
  const byUuid = uuid === undefined ? undefined : await keys.byUuid(uuid.toLowerCase(), tenantId)
  const isReachable =
    byUuid !== undefined &&
    (kinds?.includes(byUuid.kind) ?? true) &&
    (domain === null || byUuid.domain === domain)
  if (isReachable) return byUuid
  const filter = { tenantId, domain, ...reference }
  const [key, other] = (await keys.list(filter, now(), { limit: 2, offset: 0 })).keys
  if (key !== undefined && other === undefined) return key
  if (key !== undefined) throw new ApiError(409, 'ambiguous_name', several)
  if (name === undefined || !suggests) throw new ApiError(404, 'not_found', none)
  const seen = { tenantId, domain, kinds }
  const { keys: compared } = await keys.list(seen, now(), { limit: MAX_COMPARED, offset: 0 })
  const names = compared.map((each) => each.name)
  throw new ApiError(404, 'not_found', none + didYouMean(name, names))
}
