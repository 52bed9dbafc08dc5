/** Tools that take application keys out of use, and back (SPECIFICATION.md §2.1, D242). */
import { z } from 'zod'
import { timeToText } from '../../../../schema/columns.ts'
import { type AppKey, keyStateAt, keyStates, type KeyKind } from '../../../auth/app-key.ts'
import {
  type KeyWorld,
  planResumption,
  planRevocation,
  planSuspension,
  refuseOwnKey,
} from '../../../resources/keys/key-plans.ts'
import type { Plan } from '../../../changes/plan.ts'
import { ApiError } from '../../../http/api-error.ts'
import { text } from '../../../http/fields.ts'
import { defineChange } from '../../change-tool.ts'
import type { ToolUse } from '../../tool.ts'
import { time, timeOrNull } from '../shapes.ts'
import { similarKeys } from '../similar-keys.ts'

const identifier = text(100).min(1).describe('The uuid of the key, or its exact name.')
const confirmSelf = z
  .boolean()
  .default(false)
  .describe('True: it may be the key of this request, which is rejected afterwards.')

export const revokeSbcApiKey = defineChange({
  name: 'revoke_sbc_api_key',
  title: 'Revoke an SBC API key',
  description:
    'Revokes one SBC application key permanently: its requests are rejected from now on, and this cannot be undone. ' +
    'Prefer suspend_api_key, which can be undone. Repeating it has no effect. ' +
    'Look up the key with list_sbc_api_keys first, do a dry run, and have a person confirm it.',
  effect: 'destroys',
  reason: 'optional',
  scopes: ['keys:write'],
  input: z.strictObject({ identifier, confirm_self: confirmSelf }),
  output: z.object({
    message: z.string(),
    uuid: z.string(),
    name: z.string(),
    key_prefix: z.string(),
    is_active: z.boolean(),
    revoked_at: time.nullable(),
    already_revoked: z.boolean(),
  }),
  async plan({ identifier: wanted, confirm_self: isConfirmed }, use) {
    const key = await theKey(wanted, sbcOnly, use)
    refuseOwnKey(key, use.principal, isConfirmed)
    const wasRevoked = key.revokedAt !== null
    return shown(await planRevocation(key, use), (now, isDone) => ({
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
    'Takes one application key of any kind out of use: its requests are rejected from now on, on all nodes. ' +
    'resume_api_key, undo_change or the end of duration brings it back. The first step for a key that may have leaked. ' +
    'list_sbc_api_keys and list_api_keys show keys.',
  effect: 'changes',
  reason: 'required',
  expires: true,
  scopes: ['keys:write'],
  input: z.strictObject({ identifier, confirm_self: confirmSelf }),
  output: keyAfter,
  async plan({ identifier: wanted, confirm_self: isConfirmed }, use) {
    const key = await theKey(wanted, allKinds, use)
    refuseOwnKey(key, use.principal, isConfirmed)
    return shown(await planSuspension(key, use.expiresAt, use), (now) => afterView(now, use))
  },
})

export const resumeApiKey = defineChange({
  name: 'resume_api_key',
  title: 'Resume an API key',
  description:
    'Takes a suspended application key into use again. A key that an administrator made inactive stays so. ' +
    'Who did not suspend the key needs all that the key has.',
  effect: 'changes',
  reason: 'required',
  scopes: ['keys:write'],
  input: z.strictObject({ identifier }),
  output: keyAfter,
  async plan({ identifier: wanted }, use) {
    const key = await theKey(wanted, allKinds, use)
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

const afterView = (key: AppKey, { now }: Pick<KeyWorld, 'now'>) => ({
  ...nameOf(key),
  state: keyStateAt(key, now()),
  suspended_at: key.suspendedAt === null ? null : timeToText(key.suspendedAt),
})

interface Sought {
  readonly kinds: readonly KeyKind[]
  readonly noun: string
  readonly lists: string
}

const sbcOnly: Sought = { kinds: ['sbc'], noun: 'SBC key', lists: 'list_sbc_api_keys' }
const allKinds: Sought = {
  kinds: ['sbc', 'pbx', 'billing'],
  noun: 'key',
  lists: 'list_sbc_api_keys or list_api_keys',
}

/** Returns the one matching key; a name can match keys of several tenants. */
async function theKey(
  wanted: string,
  { kinds, noun, lists }: Sought,
  { keys, now, principal: { tenantId, domain } }: ToolUse,
): Promise<AppKey> {
  const byUuid = await keys.byUuid(wanted.toLowerCase(), tenantId)
  const isReachable =
    byUuid !== undefined &&
    kinds.includes(byUuid.kind) &&
    (domain === null || byUuid.domain === domain)
  if (isReachable) return byUuid
  const filter = { tenantId, domain, name: wanted, kinds }
  const { keys: named } = await keys.list(filter, now(), { limit: 2, offset: 0 })
  const [key, other] = named
  if (key === undefined)
    throw new ApiError(
      404,
      'not_found',
      `No ${noun} has this uuid or exact name. ${lists} shows the keys that you can access.` +
        (await similarKeys(wanted, { tenantId, domain, kinds }, { keys, now })),
    )
  if (other !== undefined)
    throw new ApiError(
      409,
      'ambiguous_name',
      `Several keys have this name. Nothing was revoked or changed: call again with the uuid from ${lists}`,
    )
  return key
}
