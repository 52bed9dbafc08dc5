/** `/application-keys/{uuid}/suspend` and `/resume`: what the tools of the same names do. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import {
  answerOf,
  changeDuration,
  changeReason,
  dryRun,
  change,
  recordChange,
  changeOutput,
} from '../changes/change.ts'
import {
  type KeyPlan,
  type KeyPlanDeps,
  planResumption,
  planSuspension,
  refuseOwnKey,
} from './key-plans.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { validate, describeRoute } from '../http/validate.ts'
import type { Principal } from '../auth/principal.ts'
import { requires } from '../auth/requires.ts'
import type { AppKey } from '../auth/app-key.ts'
import { exampleKey, keySchema, keyView } from './key-view.ts'
import { data } from '../http/operation.ts'
import { exampleId } from '../changes/change-routes.ts'
import { exampleTime } from '../http/view-fields.ts'

const changedKey = z.strictObject({ ...changeOutput, key: keySchema }).meta({ id: 'ChangedKey' })

const exampleSuspended = {
  dry_run: false,
  changed: true,
  change_id: exampleId,
  effect:
    'The key "monitoring" is suspended until it is resumed: its requests are rejected from now on.',
  affected: { requests_per_hour: 12 },
  previous_state: { suspended_at: null, suspended_by: null, revoked_at: null },
  undo: `undo_change with change_id ${exampleId}`,
  expires_at: null,
  key: { ...exampleKey, state: 'suspended', suspended_at: exampleTime },
}

const PATH = '/application-keys/:uuid'
const keyPath = z.strictObject({ uuid: z.string().max(100) })

const resumeBody = z.strictObject({ reason: changeReason, dry_run: dryRun })
const suspendBody = resumeBody.extend({
  duration: changeDuration.optional(),
  confirm_self: z
    .boolean()
    .default(false)
    .describe('True: it may be the key of this request, which is rejected afterwards.'),
})

interface KeyChangeOrder {
  readonly tool: string
  readonly reason: string
  readonly isDryRun: boolean
  readonly expiresAt: number | null
}

export function suspendRoutes(deps: ChangeDeps & Pick<KeyPlanDeps, 'usage'>) {
  const { keys, now } = deps
  const find = async (uuid: string, { tenantId, domain }: Principal): Promise<AppKey> => {
    const key = await keys.byUuid(uuid, tenantId)
    if (key === undefined || (domain !== null && key.domain !== domain))
      throw notFound('Application key')
    return key
  }
  const answer = async (
    c: Context<ControlEnv>,
    request: KeyChangeOrder,
    plan: (principal: Principal) => Promise<KeyPlan>,
  ) => {
    const { principal } = c.var
    const order = { ...request, principal, scopes: ['keys:write'] } as const
    const made = await change(deps, order, () => plan(principal))
    const { before, after } = made.plan
    if (made.changeId !== null) recordChange(c, made.changeId, { before, after }, request.reason)
    return ok(c, { ...answerOf(made), key: keyView(made.own.key, now()) })
  }

  return new Hono<ControlEnv>()
    .post(
      `${PATH}/suspend`,
      describeRoute({
        id: 'suspendApplicationKey',
        tag: 'Keys',
        summary: 'Suspend a key. Takes effect immediately, and can be undone.',
        body: { reason: 'it may have leaked', duration: 3_600 },
        answer: data(changedKey, exampleSuspended),
        refusals: [409],
      }),
      requires('keys:write'),
      validate('param', keyPath),
      validate('json', suspendBody),
      (c) => {
        const { reason, dry_run: isDryRun, duration, confirm_self } = c.req.valid('json')
        const expiresAt = duration === undefined ? null : now() + duration * 1_000
        const request = { tool: 'suspend_api_key', reason, isDryRun, expiresAt }
        return answer(c, request, async (principal) => {
          const key = await find(c.req.valid('param').uuid, principal)
          refuseOwnKey(key, principal, confirm_self)
          return planSuspension(key, expiresAt, { ...deps, principal })
        })
      },
    )

    .post(
      `${PATH}/resume`,
      describeRoute({
        id: 'resumeApplicationKey',
        tag: 'Keys',
        summary: 'Resume a suspended key',
        body: { reason: 'it has not leaked' },
        answer: data(changedKey, {
          ...exampleSuspended,
          effect: 'The key "monitoring" is resumed: its requests are accepted from now on.',
          key: exampleKey,
        }),
        refusals: [409],
      }),
      requires('keys:write'),
      validate('param', keyPath),
      validate('json', resumeBody),
      (c) => {
        const { reason, dry_run: isDryRun } = c.req.valid('json')
        const request = { tool: 'resume_api_key', reason, isDryRun, expiresAt: null }
        return answer(c, request, async (principal) => {
          const key = await find(c.req.valid('param').uuid, principal)
          return planResumption(key, { ...deps, principal })
        })
      },
    )
}
