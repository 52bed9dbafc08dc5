/**
 * `/pbx/extensions`: accounts of phones. Responses have the bare shapes of SPECIFICATION.md §4.1 instead of
 * the envelope; errors have the envelope.
 */
import type { ChangeDeps } from '../../changes/kinds.ts'
import { Hono } from 'hono'
import { z } from 'zod'
import { hostPort } from '../../../engine/sip-server/message/index.ts'
import { timeToText } from '../../../schema/columns.ts'
import { transaction } from '../../../schema/sql/query.ts'
import type { Principal } from '../../auth/principal.ts'
import { requires, fieldsWhere, refuseBeyondScope, scopesToUndo, type Written } from '../../auth/requires.ts'
import type { ExtensionStatus } from '../../../schema/contracts/registrations.ts'
import { creationsOf, recordChange, writeQuery, writesOf } from '../../changes/change.ts'
import { followExtension } from '../follow-rows.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { offsetOf, ok, pageMeta, pageQuery } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { patched, patchOf } from '../patch.ts'
import { inTermsOf } from '../references.ts'
import { found, idParam } from '../resource-routes.ts'
import { extensionBody } from './extension-body.ts'
import { ExtensionStore, type ExtensionView } from './extension-store.ts'
import { requestScope } from '../../auth/tenants.ts'

const path = '/pbx/extensions'
const query = z.strictObject({ ...pageQuery, search: z.string().max(100).optional() })
/** As `contacts` of the details has it. */
const registration = z.strictObject({ contact: z.string().min(1).max(512) })
const newExtension = extensionBody.required({ password: true })
const change = patchOf(extensionBody).extend({ password: extensionBody.shape.password })

export function extensionRoutes(deps: ChangeDeps) {
  const { now } = deps
  const { registrations } = deps.engine
  const extensions = new ExtensionStore(deps.store, deps.settings.hasMediaRelay)
  const { noun } = extensions
  const read = requires('extensions:read')
  const write = requires('extensions:write')
  const one = validate('param', idParam(noun))
  const statusOf = ({ domain, extension }: ExtensionView): ExtensionStatus =>
    registrations.statusOf(domain, extension)
  const show = (view: ExtensionView): Shape => shapeOf(view, statusOf(view))
  const details = (view: ExtensionView) => {
    const isRecorded = deps.engine.recordings.isAvailable && view.call_recording === 'always'
    return { ...view, recording_active: isRecorded, ...detailsOf(statusOf(view)) }
  }
  /** Rolled back when the principal may not choose the payer. */
  const asAllowed = <T extends Written<ExtensionView>>(
    principal: Principal,
    work: () => Promise<T>,
  ): Promise<T> =>
    transaction(deps.store, async () => {
      const written = await work()
      refuseBeyondScope(principal, whoPays(written))
      return written
    })

  const entered = writesOf(deps, 'extension', noun)
  const createdAs = creationsOf(deps, 'extension', noun)

  return new Hono<ControlEnv>()
    .post(path, write, validate('query', writeQuery), validate('json', newExtension), async (c) => {
      const { principal } = c.var
      const scope = requestScope(principal, now)
      const given = c.req.valid('json')
      const { reason = null } = c.req.valid('query')
      const insertion = async () => {
        const id = await inTermsOf(given, () => extensions.insert(given, scope))
        return { given, id, after: found(await extensions.find(scope, id), noun) }
      }
      const { written, changeId } = await createdAs(c, { given, reason }, async () => {
        const written = await asAllowed(principal, insertion)
        return { id: written.id, written, scopes: ['extensions:write'] }
      })
      const { id, after } = written
      await followExtension(deps, id)
      recordChange(c, changeId, { before: null, after }, reason)
      c.header('Location', `/api/v1${path}/${id}`)
      return c.json(show(after), 201)
    })

    .get(path, read, validate('query', query), async (c) => {
      const { page, limit, search } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search }
      const { rows, total } = await extensions.list(requestScope(c.var.principal, now), slice)
      return c.json({ data: rows.map(show), total, meta: pageMeta({ page, limit }, total) })
    })

    .get(`${path}/details`, read, validate('query', query), async (c) => {
      const { page, limit, search } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search }
      const { rows, total } = await extensions.list(requestScope(c.var.principal, now), slice)
      return ok(c, rows.map(details), pageMeta({ page, limit }, total))
    })

    .get(`${path}/:id`, read, one, async (c) => {
      const { id } = c.req.valid('param')
      return c.json(
        show(found(await extensions.find(requestScope(c.var.principal, now), id), noun)),
      )
    })

    .get(`${path}/:id/details`, read, one, async (c) => {
      const { id } = c.req.valid('param')
      const view = found(await extensions.find(requestScope(c.var.principal, now), id), noun)
      return ok(c, details(view))
    })

    .delete(`${path}/:id/registrations`, write, one, validate('query', registration), async (c) => {
      const { id } = c.req.valid('param')
      const { contact } = c.req.valid('query')
      const view = found(await extensions.find(requestScope(c.var.principal, now), id), noun)
      const { domain, extension } = view
      if (!(await registrations.end(domain, extension, contact))) throw notFound('Registration')
      c.set('change', { before: { contact }, after: null })
      return ok(c, details(view))
    })

    .patch(
      `${path}/:id`,
      write,
      one,
      validate('query', writeQuery),
      validate('json', change),
      async (c) => {
        const { id } = c.req.valid('param')
        const given = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const scope = requestScope(principal, now)
        const replacement = async () => {
          const before = found(await extensions.find(scope, id), noun)
          const document = found(await extensions.document(scope, id), noun)
          const body = patched(extensionBody, document, given)
          await inTermsOf(given, () => extensions.replace(id, body, scope))
          return { given, before, after: found(await extensions.find(scope, id), noun) }
        }
        const { written, changeId } = await entered(c, id, { given, reason }, async () => {
          const written = await asAllowed(principal, replacement)
          return { written, scopes: scopesToUndo(principal, 'extensions:write', written, whoPays) }
        })
        // Phones with the old password lose their registration.
        await followExtension(deps, id)
        recordChange(c, changeId, { before: written.before, after: written.after }, reason)
        return c.json(show(written.after))
      },
    )

    .delete(`${path}/:id`, write, one, validate('query', writeQuery), async (c) => {
      const { id } = c.req.valid('param')
      const { reason = null } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const { written, changeId } = await entered(c, id, { given: {}, reason }, async () => {
        const before = found(await extensions.find(scope, id), noun)
        await extensions.remove(id, scope)
        return { written: before, scopes: ['extensions:write' as const] }
      })
      await followExtension(deps, id)
      recordChange(c, changeId, { before: written, after: null }, reason)
      return c.json({ id, deleted: true })
    })
}

/** Requires the scope that assigns numbers to paying customers. */
const whoPays = ({ before, after }: Written<ExtensionView>) =>
  fieldsWhere([
    after.customer_id !== null && after.customer_id !== before?.customer_id,
    'customer',
    ['customers:write'],
  ])

/** The fields of SPECIFICATION.md §4.1, and no others. */
interface Shape {
  readonly id: number
  readonly extension: string
  readonly display_name: string
  readonly voicemail_enabled: boolean
  readonly status: ExtensionStatus['status']
  /** Empty while no phone is registered: the specification has a string here. */
  readonly user_agent: string
}

const shapeOf = (view: ExtensionView, { status, userAgent }: ExtensionStatus): Shape => ({
  id: view.id,
  extension: view.extension,
  display_name: view.display_name,
  voicemail_enabled: view.voicemail_enabled,
  status,
  user_agent: userAgent ?? '',
})

/** Details for an operator whose phone does not ring. */
const detailsOf = ({ status, contacts }: ExtensionStatus) => ({
  status,
  contacts: contacts.map(({ uri, userAgent, source, node, expiresAt }) => ({
    uri,
    user_agent: userAgent,
    source: `${source.protocol}/${hostPort(source.address, source.port)}`,
    node,
    expires_at: timeToText(expiresAt),
  })),
})

export type ExtensionDetails = ExtensionView &
  ReturnType<typeof detailsOf> & { readonly recording_active: boolean }
