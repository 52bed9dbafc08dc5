/** `/application-keys`: the REST of SPECIFICATION.md §4.6. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import { operationOf } from '../changes/audit.ts'
import {
  changeReason,
  type ChangeOrder,
  creationsOf,
  change,
  recordChange,
  writeQuery,
  writesOf,
  answerOf,
  changeDuration,
  dryRun,
  changeOutput,
} from '../changes/change.ts'
import {
  isOfAgent,
  planRevocation,
  refuseOwnKey,
  type KeyPlan,
  planResumption,
  planSuspension,
  reachable,
} from './key-plans.ts'
import { ApiError, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok, offsetOf, pageMeta } from '../http/envelope.ts'
import { refuseOtherVersion, showVersion, versioned, versionOf } from '../http/precondition.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { requires, requiresCredential } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { auditedKey, keyView } from './key-view.ts'
import { keyFields, keyPatch, keyQuery, rotateBody, type AppKey } from '../auth/app-key.ts'
import { type ChangedKey, changeKey, grantorOf, issueKey, rotateKey } from '../auth/issue-key.ts'
import type { KeyUsage } from '../auth/key-usage.ts'
import { count, exampleTime } from '../http/view-fields.ts'
import { data, list } from '../http/operation.ts'
import { exampleId } from '../changes/change-routes.ts'

const { body: newKeyBody, view: keySchema, example: exampleKey } = keyFields

const newKey = keySchema
  .extend({
    token: z
      .string()
      .optional()
      .describe('Shown only in this response: absent when an Idempotency-Key repeats it.'),
    token_omitted: z.string().optional().describe('Why a repeated response has no token.'),
  })
  .meta({ id: 'NewApplicationKey' })

const ownKey = keySchema.extend({ permissions: z.array(z.string()) }).meta({ id: 'OwnKey' })

const keyUsage = z
  .strictObject({
    days: z
      .array(z.strictObject({ date: z.iso.date(), requests: count }))
      .describe('The last 30 days in UTC, oldest first.'),
  })
  .meta({ id: 'KeyUsage' })

const PATH = '/application-keys'

/** Any text: an invalid uuid is not found, like a uuid of another tenant. */
const keyPath = z.strictObject({ uuid: z.string().max(100) })

const revokeQuery = z.strictObject({
  confirm_self: z
    .enum(['true', 'false'])
    .optional()
    .describe('true: the key of an agent may revoke itself.'),
  reason: changeReason.optional(),
})

type KeyRoutesDeps = ChangeDeps & { readonly usage: Pick<KeyUsage, 'daysOf' | 'ofLastHour'> }

export function keyRoutes(deps: KeyRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', tokenRoutes(deps))
    .route('/', shownKeys(deps))
    .route('/', changedKeys(deps))
    .route('/', suspendRoutes(deps))
}

/** The only answers with a token. */
function tokenRoutes(deps: KeyRoutesDeps) {
  const { now } = deps
  const entered = writesOf(deps, 'api_key', 'key')
  const createdAs = creationsOf(deps, 'api_key', 'key')

  return new Hono<ControlEnv>()
    .post(
      PATH,
      describeRoute({
        id: 'createApplicationKey',
        tag: 'Keys',
        summary: 'Create a key. Only this response contains the token.',
        body: { name: 'monitoring', scopes: ['*:read'] },
        answer: data(newKey, { ...exampleKey, token: `sbc_live_${'a'.repeat(64)}` }, 201),
      }),
      requires('keys:write'),
      validate('query', writeQuery),
      validate('json', newKeyBody),
      repeatable({ shownOnce: 'token' }),
      async (c) => {
        const given = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { written, changeId } = await createdAs(c, { given, reason }, async () => {
          const issued = await issueKey(deps, given, grantorOf(c.var.principal))
          return { id: issued.key.uuid, written: issued, scopes: ['keys:write'] }
        })
        const { key, token } = written
        const after = auditedKey(key, now())
        recordChange(c, changeId, { before: null, after }, reason)
        c.header('Cache-Control', 'no-store')
        return created(c, `/api/v1${PATH}/${key.uuid}`, { ...keyView(key, now()), token })
      },
    )

    .post(
      `${PATH}/:uuid/rotate`,
      describeRoute({
        id: 'rotateApplicationKey',
        tag: 'Keys',
        summary: 'Rotate the token of a key. The old token stays valid during the grace period.',
        body: { grace_seconds: 3_600 },
        answer: data(newKey, { ...exampleKey, token: `sbc_live_${'b'.repeat(64)}` }, 201),
      }),
      requires('keys:write'),
      validate('param', keyPath),
      validate('query', writeQuery),
      validate('json', rotateBody),
      repeatable({ shownOnce: 'token' }),
      async (c) => {
        const { principal } = c.var
        const { uuid } = c.req.valid('param')
        const given = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const rotation = async () => {
          const found = () => reachable(uuid, principal, deps.keys)
          const rotated = await rotateKey(deps, found, given.grace_seconds, grantorOf(principal))
          return { written: rotated, scopes: ['keys:write' as const] }
        }
        const write = { given, reason, secret: 'token' }
        const { written, changeId } = await entered(c, uuid, write, rotation)
        const { after, token } = written
        recordChange(c, changeId, auditedChange(written, now()), reason)
        c.header('Cache-Control', 'no-store')
        return created(c, `/api/v1${PATH}/${after.uuid}`, { ...keyView(after, now()), token })
      },
    )
}

function shownKeys(deps: KeyRoutesDeps) {
  const { keys, now, usage } = deps

  return new Hono<ControlEnv>()
    .get(
      PATH,
      describeRoute({
        id: 'listApplicationKeys',
        tag: 'Keys',
        summary: 'List keys',
        answer: list(keySchema, exampleKey),
      }),
      requires('keys:read'),
      validate('query', keyQuery),
      async (c) => {
        const { search, tenant, state, kind, ...page } = c.req.valid('query')
        const { tenantId, domain } = c.var.principal
        const kinds = kind && [kind]
        const filter = { tenantId, domain, tenantSlug: tenant, search, state, kinds }
        const found = await keys.list(filter, now(), { limit: page.limit, offset: offsetOf(page) })
        const shown = found.keys.map((key) => keyView(key, now()))
        return ok(c, shown, pageMeta(page, found.total))
      },
    )

    .get(
      `${PATH}/self`,
      describeRoute({
        id: 'getOwnKey',
        tag: 'Keys',
        summary: 'Get the presented key and its permissions',
        answer: data(ownKey, { ...exampleKey, permissions: ['calls:read'] }),
        refusals: [404],
      }),
      requiresCredential(),
      async (c) => {
        const { principal } = c.var
        if (principal.kind !== 'key')
          throw new ApiError(404, 'not_a_key', 'The request was not made with an application key')
        const key = await keys.byId(principal.keyId)
        if (key === undefined) throw notFound('Application key')
        return ok(c, { ...keyView(key, now()), permissions: [...principal.scopes] })
      },
    )

    .get(
      `${PATH}/:uuid`,
      describeRoute({
        id: 'getApplicationKey',
        tag: 'Keys',
        summary: 'Get a key',
        answer: data(keySchema, exampleKey),
      }),
      requires('keys:read'),
      versioned(),
      validate('param', keyPath),
      async (c) => {
        const key = await reachable(c.req.valid('param').uuid, c.var.principal, deps.keys)
        showVersion(c, versionOfKey(key))
        return ok(c, keyView(key, now()))
      },
    )

    .get(
      `${PATH}/:uuid/usage`,
      describeRoute({
        id: 'getKeyUsage',
        tag: 'Keys',
        summary: 'Get the successful requests of a key by day',
        answer: data(keyUsage, { days: [{ date: '2026-01-01', requests: 120 }] }),
      }),
      requires('keys:read'),
      validate('param', keyPath),
      async (c) => {
        const key = await reachable(c.req.valid('param').uuid, c.var.principal, deps.keys)
        return ok(c, { days: await usage.daysOf(key.id, now()) })
      },
    )
}

function changedKeys(deps: KeyRoutesDeps) {
  const { now } = deps
  const entered = writesOf(deps, 'api_key', 'key')

  return new Hono<ControlEnv>()
    .patch(
      `${PATH}/:uuid`,
      describeRoute({
        id: 'updateApplicationKey',
        tag: 'Keys',
        summary: 'Update a key. Takes effect immediately.',
        body: { is_active: false },
        answer: data(keySchema, exampleKey),
        refusals: [409],
      }),
      requires('keys:write'),
      versioned(),
      validate('param', keyPath),
      validate('query', writeQuery),
      validate('json', keyPatch),
      async (c) => {
        const { principal } = c.var
        const { reason = null } = c.req.valid('query')
        const given = c.req.valid('json')
        const { uuid } = c.req.valid('param')
        const present = async () => {
          const key = await reachable(uuid, principal, deps.keys)
          refuseOther(c, key, now())
          return key
        }
        const patch = async () => ({
          written: await changeKey(deps, present, given, grantorOf(principal)),
          scopes: ['keys:write' as const],
        })
        const { written, changeId } = await entered(c, uuid, { given, reason }, patch)
        recordChange(c, changeId, auditedChange(written, now()), reason)
        showVersion(c, versionOfKey(written.after))
        return ok(c, keyView(written.after, now()))
      },
    )

    .delete(
      `${PATH}/:uuid`,
      describeRoute({
        id: 'revokeApplicationKey',
        tag: 'Keys',
        summary: 'Revoke a key permanently',
        answer: data(keySchema, { ...exampleKey, state: 'revoked', is_active: false }),
        refusals: [409],
      }),
      requires('keys:write'),
      versioned(),
      validate('param', keyPath),
      validate('query', revokeQuery),
      async (c) => {
        const { principal } = c.var
        const isConfirmed = c.req.valid('query').confirm_self === 'true' || !isOfAgent(principal)
        const { reason = null } = c.req.valid('query')
        let before: AppKey | undefined
        const plan = async () => {
          before = await reachable(c.req.valid('param').uuid, principal, deps.keys)
          refuseOther(c, before, now())
          refuseOwnKey(before, principal, isConfirmed)
          return planRevocation(before, { ...deps, principal })
        }
        const order = {
          principal,
          tool: operationOf(c),
          reason,
          scopes: ['keys:write' as const],
        }
        const { changeId, own } = await change(deps, order, plan)
        const states = auditedChange({ before: before ?? own.key, after: own.key }, now())
        recordChange(c, changeId, states, reason)
        return ok(c, keyView(own.key, now()))
      },
    )
}

/** Its use is no part of it, nor is that it has expired meanwhile. */
function versionOfKey(key: AppKey): string {
  const { state: _, ...rest } = auditedKey(key, 0)
  return versionOf(rest)
}

function refuseOther(c: Context<ControlEnv>, key: AppKey, now: number): void {
  const isReader = c.var.principal.scopes.has('keys:read')
  const shown = isReader ? () => keyView(key, now) : undefined
  refuseOtherVersion(c, { version: versionOfKey(key), shown })
}

const auditedChange = ({ before, after }: ChangedKey, now: number) => ({
  before: auditedKey(before, now),
  after: auditedKey(after, now),
})

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

const resumeBody = z.strictObject({ reason: changeReason, dry_run: dryRun })
const suspendBody = resumeBody.extend({
  duration: changeDuration.optional(),
  confirm_self: z
    .boolean()
    .default(false)
    .describe('True: it may be the key of this request, which is rejected afterwards.'),
})

/** The same changes as the tools of these names. */
function suspendRoutes(deps: KeyRoutesDeps) {
  const { now } = deps
  const answer = async (
    c: Context<ControlEnv>,
    order: Omit<ChangeOrder, 'principal' | 'scopes'>,
    plan: () => Promise<KeyPlan>,
  ) => {
    const { principal } = c.var
    const made = await change(deps, { ...order, principal, scopes: ['keys:write'] }, plan)
    const { before, after } = made.plan
    if (made.changeId !== null) recordChange(c, made.changeId, { before, after }, order.reason)
    return ok(c, { ...answerOf(made), key: keyView(made.own.key, now()) })
  }

  return new Hono<ControlEnv>()
    .post(
      `${PATH}/:uuid/suspend`,
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
      repeatable(),
      (c) => {
        const { principal } = c.var
        const { reason, dry_run: isDryRun, duration, confirm_self } = c.req.valid('json')
        const expiresAt = duration === undefined ? null : now() + duration * 1_000
        return answer(c, { tool: 'suspend_api_key', reason, isDryRun, expiresAt }, async () => {
          const key = await reachable(c.req.valid('param').uuid, principal, deps.keys)
          refuseOwnKey(key, principal, confirm_self)
          return planSuspension(key, expiresAt, { ...deps, principal })
        })
      },
    )

    .post(
      `${PATH}/:uuid/resume`,
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
      repeatable(),
      (c) => {
        const { principal } = c.var
        const { reason, dry_run: isDryRun } = c.req.valid('json')
        return answer(c, { tool: 'resume_api_key', reason, isDryRun }, async () => {
          const key = await reachable(c.req.valid('param').uuid, principal, deps.keys)
          return planResumption(key, { ...deps, principal })
        })
      },
    )
}
