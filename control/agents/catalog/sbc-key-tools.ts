/** The tool that lists SBC application keys (SPECIFICATION.md §2.1). */
import { z } from 'zod'
import { type AppKey, keyStates } from '../../auth/app-key.ts'
import { keyView } from '../../resources/keys/key-view.ts'
import { text } from '../../http/fields.ts'
import { defineTool } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'

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
  state: z.enum(keyStates),
  owner_username: z.string().nullable(),
  tenant_slug: z.string().nullable(),
  created_at: time,
})

export const listSbcApiKeys = defineTool({
  name: 'list_sbc_api_keys',
  title: 'List SBC API keys',
  description:
    'Lists the application keys of the SBC (tokens start with sbc_live_) with scopes, expiry and usage, ' +
    `at most ${MAX_ROWS}. total counts all matching keys. Use it to audit keys, and to find the uuid for suspend_api_key.`,
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

const viewOf = (key: AppKey, now: number) => ({
  ...keyView(key, now),
  scopes: [...key.scopeLabels],
})
