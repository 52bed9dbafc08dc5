/** `/application-keys`: the REST of SPECIFICATION.md §4.6. */
import { Hono } from 'hono'
import { z } from 'zod'
import { ApiError, notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { created, ok } from '../../http/envelope.ts'
import { offsetOf, pageMeta } from '../../http/page.ts'
import { validate } from '../../http/validate.ts'
import type { Idempotency } from '../../middleware/idempotency.ts'
import type { Principal } from '../principal.ts'
import { requires, requiresCredential } from '../requires.ts'
import type { AppKey } from './app-key.ts'
import { changeKey, grantorOf, issueKey, rotateKey, type KeyMint } from './issue-key.ts'
import { keyPatch, keyQuery, newKeyBody, rotateBody } from './key-bodies.ts'
import type { KeyUsage } from './key-usage.ts'
import { auditedKey, keyView } from './key-view.ts'

const PATH = '/application-keys'

/** Any text: an invalid uuid is not found, like a uuid of another tenant. */
const keyPath = z.strictObject({ uuid: z.string().max(100) })

export function keyRoutes(
  mint: KeyMint,
  usage: Pick<KeyUsage, 'daysOf'>,
  idempotency: Idempotency,
) {
  const { keys, now } = mint
  const find = (uuid: string, principal: Principal): AppKey => {
    const key = keys.byUuid(uuid, principal.tenantId)
    if (key === undefined || !isInDomain(key, principal)) throw notFound('Application key')
    return key
  }

  return new Hono<ControlEnv>()
    .post(PATH, requires('keys:write'), validate('json', newKeyBody), idempotency.once(), (c) => {
      const issued = issueKey(mint, c.req.valid('json'), grantorOf(c.var.principal))
      const shown = keyView(issued.key, now())
      c.set('change', { before: null, after: auditedKey(issued.key, now()) })
      c.header('Cache-Control', 'no-store')
      return created(c, `/api/v1${PATH}/${issued.key.uuid}`, { ...shown, token: issued.token })
    })

    .get(PATH, requires('keys:read'), validate('query', keyQuery), (c) => {
      const { search, tenant, state, kind, ...page } = c.req.valid('query')
      const { tenantId, domain } = c.var.principal
      const kinds = kind && [kind]
      const filter = { tenantId, domain, tenantSlug: tenant, search, state, kinds }
      const found = keys.list(filter, now(), { limit: page.limit, offset: offsetOf(page) })
      const shown = found.keys.map((key) => keyView(key, now()))
      return ok(c, shown, pageMeta(page, found.total))
    })

    .get(`${PATH}/self`, requiresCredential(), (c) => {
      const { principal } = c.var
      if (principal.kind !== 'key')
        throw new ApiError(404, 'not_a_key', 'The request was not made with an application key')
      const key = keys.byId(principal.keyId)
      if (key === undefined) throw notFound('Application key')
      return ok(c, { ...keyView(key, now()), permissions: [...principal.scopes] })
    })

    .get(`${PATH}/:uuid`, requires('keys:read'), validate('param', keyPath), (c) =>
      ok(c, keyView(find(c.req.valid('param').uuid, c.var.principal), now())),
    )

    .get(`${PATH}/:uuid/usage`, requires('keys:read'), validate('param', keyPath), (c) => {
      const key = find(c.req.valid('param').uuid, c.var.principal)
      return ok(c, { days: usage.daysOf(key.id, now()) })
    })

    .patch(
      `${PATH}/:uuid`,
      requires('keys:write'),
      validate('param', keyPath),
      validate('json', keyPatch),
      (c) => {
        const key = find(c.req.valid('param').uuid, c.var.principal)
        const changed = changeKey(mint, key, c.req.valid('json'), grantorOf(c.var.principal))
        const shown = keyView(changed, now())
        c.set('change', { before: auditedKey(key, now()), after: auditedKey(changed, now()) })
        return ok(c, shown)
      },
    )

    .post(
      `${PATH}/:uuid/rotate`,
      requires('keys:write'),
      validate('param', keyPath),
      validate('json', rotateBody),
      idempotency.once(),
      (c) => {
        const key = find(c.req.valid('param').uuid, c.var.principal)
        const { grace_seconds: grace } = c.req.valid('json')
        const issued = rotateKey(mint, key, grace, grantorOf(c.var.principal))
        const shown = keyView(issued.key, now())
        c.set('change', { before: auditedKey(key, now()), after: auditedKey(issued.key, now()) })
        c.header('Cache-Control', 'no-store')
        return created(c, `/api/v1${PATH}/${key.uuid}`, { ...shown, token: issued.token })
      },
    )

    .delete(`${PATH}/:uuid`, requires('keys:write'), validate('param', keyPath), (c) => {
      const key = find(c.req.valid('param').uuid, c.var.principal)
      const revoked = keys.revoke(key, now())
      c.set('change', { before: auditedKey(key, now()), after: auditedKey(revoked, now()) })
      return ok(c, keyView(revoked, now()))
    })
}

const isInDomain = (key: AppKey, { domain }: Principal): boolean =>
  domain === null || key.domain === domain
