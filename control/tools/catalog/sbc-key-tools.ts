/** Tools for SBC application keys (SPECIFICATION.md §2.1): list and revoke. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import type { AppKey } from '../../auth/keys/app-key.ts'
import { auditedKey, keyView } from '../../auth/keys/key-view.ts'
import { ApiError } from '../../http/api-error.ts'
import { text } from '../../provisioning/fields.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'
import { similarKeys } from './similar-keys.ts'

const sbcKey = z.object({
  uuid: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  key_prefix: z.string().describe('The first 12 characters of the token; not unique.'),
  scopes: z.array(z.string()),
  rate_limit_rpm: z.int(),
  expires_at: time.nullable(),
  last_used_at: time.nullable(),
  request_count: z.int(),
  is_active: z.boolean(),
  state: z.enum(['active', 'inactive', 'expired', 'revoked']),
  owner_username: z.string().nullable(),
  tenant_slug: z.string().nullable(),
  created_at: time,
})

export const listSbcApiKeys = defineTool({
  name: 'list_sbc_api_keys',
  title: 'List SBC API keys',
  description:
    'Lists the application keys of the SBC (tokens start with sbc_live_) with scopes, expiry and usage, ' +
    `at most ${MAX_ROWS}. total counts all matching keys. Use it to audit keys, and to find the uuid for revoke_sbc_api_key.`,
  effect: 'reads',
  scopes: ['keys:read'],
  input: z.strictObject({
    search: text(100)
      .optional()
      .describe('Part of the key name or of the owner. Defaults to all keys.'),
  }),
  output: z.object({ apiKeys: z.array(sbcKey), total: z.int() }),
  async run({ search }, { keys, now, principal: { tenantId, domain } }) {
    const filter = {
      tenantId,
      domain,
      search,
      searchIn: ['name', 'owner_username'],
      kinds: ['sbc'],
    } as const
    const found = await keys.list(filter, now(), { limit: MAX_ROWS, offset: 0 })
    return { apiKeys: found.keys.map((key) => viewOf(key, now())), total: found.total }
  },
})

export const revokeSbcApiKey = defineTool({
  name: 'revoke_sbc_api_key',
  title: 'Revoke an SBC API key',
  description:
    'Revokes one SBC application key permanently: its requests are rejected from now on, and this cannot be undone. ' +
    'Repeating it has no effect. Look up the key with list_sbc_api_keys first, and have a person confirm it.',
  effect: 'destroys',
  scopes: ['keys:write'],
  input: z.strictObject({
    identifier: text(100).min(1).describe('The uuid of the key, or its exact name.'),
  }),
  output: z.object({
    message: z.string(),
    uuid: z.string(),
    name: z.string(),
    key_prefix: z.string(),
    is_active: z.literal(false),
    revoked_at: time,
    already_revoked: z.boolean(),
  }),
  async run({ identifier }, use) {
    const { key, revoked } = await use.keys.atomically(async () => {
      const found = await theKey(identifier, use)
      return { key: found, revoked: await use.keys.revoke(found, use.now()) }
    })
    const { uuid, name, keyPrefix, revokedAt } = revoked
    use.changed({ before: auditedKey(key, use.now()), after: auditedKey(revoked, use.now()) })
    const wasRevoked = key.revokedAt !== null
    return {
      message: wasRevoked ? 'The key was already revoked.' : 'The key is permanently revoked.',
      uuid,
      name,
      key_prefix: keyPrefix,
      is_active: false as const,
      revoked_at: timeToText(revokedAt ?? use.now()),
      already_revoked: wasRevoked,
    }
  },
})

/** Returns the one matching SBC key; a name can match keys of several tenants. */
async function theKey(identifier: string, { keys, now, principal }: ToolUse): Promise<AppKey> {
  const { tenantId, domain } = principal
  const byUuid = await keys.byUuid(identifier.toLowerCase(), tenantId)
  const isReachable = byUuid?.kind === 'sbc' && (domain === null || byUuid.domain === domain)
  if (byUuid !== undefined && isReachable) return byUuid
  const filter = { tenantId, domain, name: identifier, kinds: ['sbc'] } as const
  const { keys: named } = await keys.list(filter, now(), { limit: 2, offset: 0 })
  const [key, other] = named
  if (key === undefined)
    throw new ApiError(
      404,
      'not_found',
      'No SBC key has this uuid or exact name. list_sbc_api_keys lists the keys that you can access.' +
        (await similarKeys(identifier, { tenantId, domain, kinds: ['sbc'] }, { keys, now })),
    )
  if (other !== undefined)
    throw new ApiError(
      409,
      'ambiguous_name',
      'Several keys have this name. Nothing was revoked: call again with the uuid from list_sbc_api_keys',
    )
  return key
}

const viewOf = (key: AppKey, now: number) => ({
  ...keyView(key, now),
  scopes: [...key.scopeLabels],
})
