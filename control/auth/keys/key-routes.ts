/** `/application-keys`: the REST of SPECIFICATION.md §4.6. */
import { Hono } from 'hono'
import { routePath } from 'hono/route'
import { z } from 'zod'
import { changeReason } from '../../changes/change-fields.ts'
import type { ChangeWorld } from '../../changes/change-world.ts'
import { tellEntered, writeQuery, writesOf } from '../../changes/enter-write.ts'
import { isOfAgent, planRevocation, refuseOwnKey } from '../../changes/key-plans.ts'
import { makeChange } from '../../changes/make-change.ts'
import { ApiError, notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { created, ok } from '../../http/envelope.ts'
import { offsetOf, pageMeta } from '../../http/page.ts'
import { validate } from '../../http/validate.ts'
import type { Idempotency } from '../../middleware/idempotency.ts'
import type { Principal } from '../principal.ts'
import { newUuid } from '../../uuid.ts'
import { requires, requiresCredential } from '../requires.ts'
import type { AppKey } from './app-key.ts'
import {
  changeKey,
  grantorOf,
  issueKey,
  rotateKey,
  type ChangedKey,
  type KeyMint,
} from './issue-key.ts'
import { keyPatch, keyQuery, newKeyBody, rotateBody } from './key-bodies.ts'
import type { KeyUsage } from './key-usage.ts'
import { auditedKey, keyView } from './key-view.ts'

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

export function keyRoutes(
  world: ChangeWorld & { readonly usage: Pick<KeyUsage, 'daysOf' | 'ofLastHour'> },
  idempotency: Idempotency,
) {
  const mint: KeyMint = world
  const { keys, now, usage } = world
  const entered = writesOf(world, 'api_key', 'key')
  const auditedChange = ({ before, after }: ChangedKey) => ({
    before: auditedKey(before, now()),
    after: auditedKey(after, now()),
  })
  const find = async (uuid: string, principal: Principal): Promise<AppKey> => {
    const key = await keys.byUuid(uuid, principal.tenantId)
    if (key === undefined || !isInDomain(key, principal)) throw notFound('Application key')
    return key
  }

  return new Hono<ControlEnv>()
    .post(
      PATH,
      requires('keys:write'),
      validate('json', newKeyBody),
      idempotency.once(),
      async (c) => {
        const issued = await issueKey(mint, c.req.valid('json'), grantorOf(c.var.principal))
        const shown = keyView(issued.key, now())
        c.set('change', { before: null, after: auditedKey(issued.key, now()) })
        c.header('Cache-Control', 'no-store')
        return created(c, `/api/v1${PATH}/${issued.key.uuid}`, { ...shown, token: issued.token })
      },
    )

    .get(PATH, requires('keys:read'), validate('query', keyQuery), async (c) => {
      const { search, tenant, state, kind, ...page } = c.req.valid('query')
      const { tenantId, domain } = c.var.principal
      const kinds = kind && [kind]
      const filter = { tenantId, domain, tenantSlug: tenant, search, state, kinds }
      const found = await keys.list(filter, now(), { limit: page.limit, offset: offsetOf(page) })
      const shown = found.keys.map((key) => keyView(key, now()))
      return ok(c, shown, pageMeta(page, found.total))
    })

    .get(`${PATH}/self`, requiresCredential(), async (c) => {
      const { principal } = c.var
      if (principal.kind !== 'key')
        throw new ApiError(404, 'not_a_key', 'The request was not made with an application key')
      const key = await keys.byId(principal.keyId)
      if (key === undefined) throw notFound('Application key')
      return ok(c, { ...keyView(key, now()), permissions: [...principal.scopes] })
    })

    .get(`${PATH}/:uuid`, requires('keys:read'), validate('param', keyPath), async (c) =>
      ok(c, keyView(await find(c.req.valid('param').uuid, c.var.principal), now())),
    )

    .get(`${PATH}/:uuid/usage`, requires('keys:read'), validate('param', keyPath), async (c) => {
      const key = await find(c.req.valid('param').uuid, c.var.principal)
      return ok(c, { days: await usage.daysOf(key.id, now()) })
    })

    .patch(
      `${PATH}/:uuid`,
      requires('keys:write'),
      validate('param', keyPath),
      validate('query', writeQuery),
      validate('json', keyPatch),
      async (c) => {
        const { principal } = c.var
        const { reason = null } = c.req.valid('query')
        const given = c.req.valid('json')
        const { uuid } = c.req.valid('param')
        const patch = async () => ({
          written: await changeKey(mint, () => find(uuid, principal), given, grantorOf(principal)),
          scopes: ['keys:write' as const],
        })
        const { written, changeId } = await entered(c, uuid, { given, reason }, patch)
        tellEntered(c, changeId, auditedChange(written), reason)
        return ok(c, keyView(written.after, now()))
      },
    )

    .post(
      `${PATH}/:uuid/rotate`,
      requires('keys:write'),
      validate('param', keyPath),
      validate('json', rotateBody),
      idempotency.once(),
      async (c) => {
        const { principal } = c.var
        const found = () => find(c.req.valid('param').uuid, principal)
        const { grace_seconds: grace } = c.req.valid('json')
        const rotated = await rotateKey(mint, found, grace, grantorOf(principal))
        const { after, token } = rotated
        c.set('change', auditedChange(rotated))
        c.header('Cache-Control', 'no-store')
        return created(c, `/api/v1${PATH}/${after.uuid}`, { ...keyView(after, now()), token })
      },
    )

    .delete(
      `${PATH}/:uuid`,
      requires('keys:write'),
      validate('param', keyPath),
      validate('query', revokeQuery),
      async (c) => {
        const { principal } = c.var
        const isConfirmed = c.req.valid('query').confirm_self === 'true' || !isOfAgent(principal)
        const { reason = null } = c.req.valid('query')
        let before: AppKey | undefined
        const plan = async () => {
          before = await find(c.req.valid('param').uuid, principal)
          refuseOwnKey(before, principal, isConfirmed)
          return planRevocation(before, { ...world, principal })
        }
        const order = {
          ...{ principal, tool: `${c.req.method} ${routePath(c, -1)}`, reason, isDryRun: false },
          ...{ scopes: ['keys:write' as const], expiresAt: null },
          changeId: newUuid(mint.randomBytes),
        }
        const { changeId, own } = await makeChange(order, plan, world)
        const change = auditedChange({ before: before ?? own.key, after: own.key })
        tellEntered(c, changeId, change, reason)
        return ok(c, keyView(own.key, now()))
      },
    )
}

const isInDomain = (key: AppKey, { domain }: Principal): boolean =>
  domain === null || key.domain === domain
