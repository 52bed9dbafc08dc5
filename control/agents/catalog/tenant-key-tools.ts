/** Tools for tenant application keys (SPECIFICATION.md §2.2): list and look up, masked. */
import { z } from 'zod'
import { type AppKey, type KeyKind, keyStates } from '../../auth/app-key.ts'
import { keyView } from '../../resources/keys/key-view.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { text } from '../../http/fields.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'
import { similarKeys } from './similar-keys.ts'

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
  rate_limit_rpm: z.int(),
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
    'Lists the application keys of tenants (tokens start with ak_ or bill_) with masked secrets, ' +
    `at most ${MAX_ROWS}. total counts all matching keys. list_sbc_api_keys lists SBC keys.`,
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    search: text(100)
      .optional()
      .describe('Part of the name or of the description. Defaults to all keys.'),
  }),
  output: z.object({ apiKeys: z.array(tenantKey), total: z.int() }),
  async run({ search }, { keys, now, principal: { tenantId, domain } }) {
    const searchIn = ['name', 'description'] as const
    const filter = { tenantId, domain, search, searchIn, kinds }
    const found = await keys.list(filter, now(), { limit: MAX_ROWS, offset: 0 })
    return { apiKeys: found.keys.map((key) => viewOf(key, now())), total: found.total }
  },
})

export const getApiKeyStatus = defineTool({
  name: 'get_api_key_status',
  title: 'Get the status of a tenant API key',
  description:
    'Returns the state of one tenant key: prefix, scopes, creation, expiry and last use. ' +
    'Give key_id (from list_api_keys) or the exact name. Prefer list_api_keys, which shows the same of several.',
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    key_id: z.int().min(1).optional().describe('Internal id of the key.'),
    name: text(100).min(1).optional().describe('Exact name of the key.'),
  }),
  output: tenantKey,
  run: async ({ key_id, name }, use) => viewOf(await theKey(key_id, name, use), use.now()),
})

async function theKey(
  id: number | undefined,
  name: string | undefined,
  use: ToolUse,
): Promise<AppKey> {
  if (id === undefined && name === undefined)
    throw badRequest('Give key_id or name; list_api_keys shows both')
  const { tenantId, domain } = use.principal
  const filter = {
    tenantId,
    domain,
    kinds,
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
  }
  const { keys: found } = await use.keys.list(filter, use.now(), { limit: 2, offset: 0 })
  const [key, other] = found
  if (key === undefined)
    throw new ApiError(
      404,
      'not_found',
      'No tenant key matches. list_api_keys lists the keys that you can access.' +
        (name === undefined ? '' : await similarKeys(name, { tenantId, domain, kinds }, use)),
    )
  if (other !== undefined)
    throw new ApiError(
      409,
      'ambiguous_name',
      'Several keys have this name. Call again with the key_id from list_api_keys',
    )
  return key
}

function viewOf(key: AppKey, now: number) {
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
