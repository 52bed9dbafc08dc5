/**
 * `/pbx/extensions`: accounts of phones. Responses have the bare shapes of SPECIFICATION.md §4.1
 * instead of the envelope; errors have the envelope.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import { hostPort } from '../../schema/sip/index.ts'
import { timeToText } from '../../schema/columns.ts'
import type { ExtensionStatus } from '../../schema/contracts/engine.ts'
import { readApart } from '../../schema/sql/query.ts'
import { requires } from '../auth/requires.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, offsetOf, pageMeta, pageQuery } from '../http/envelope.ts'
import { showVersion, versioned } from '../http/precondition.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { extensions, type ExtensionView, extensionDetails } from './extensions.ts'
import { storeOf } from './resource.ts'
import { found, idParam, resourceRoutes } from './resource-routes.ts'
import { requestScope } from '../auth/tenants.ts'
import { data, list as listOf } from '../http/operation.ts'
import { exampleTime } from '../http/view-fields.ts'

const exampleDetails = {
  ...extensions.fields.example,
  recording_active: false,
  status: 'registered',
  registrars: ['sip:192.0.2.1:5060;transport=udp'],
  contacts: [
    {
      uri: 'sip:100@192.0.2.9:5060',
      user_agent: 'Phone/1.0',
      source: 'udp/192.0.2.9:5060',
      node: 'sbc-1',
      expires_at: exampleTime,
    },
  ],
}

const { noun, path } = extensions
const { body } = extensions.fields
const query = z.strictObject({ ...pageQuery, search: z.string().max(100).optional() })
/** The contact, as the details show it in `contacts`. */
const registration = z.strictObject({ contact: z.string().min(1).max(512) })

const read = requires('extensions:read')
const one = validate('param', idParam(noun))

export function extensionRoutes(deps: ChangeDeps) {
  const { registrations } = deps.engine
  return new Hono<ControlEnv>()
    .route('/', listExtensionDetailsRoute(deps))
    .route('/', getExtensionDetailsRoute(deps))
    .route('/', deleteRegistrationRoute(deps))
    .route(
      '/',
      resourceRoutes(deps, extensions, {
        isBare: true,
        newBody: body.required({ password: true }),
        patchFields: { password: body.shape.password },
        show: (view) => shapeOf(view, registrations.statusOf(view.domain, view.extension)),
      }),
    )
}

function listExtensionDetailsRoute(deps: ChangeDeps) {
  const { now, store } = deps
  return new Hono<ControlEnv>().get(
    `${path}/details`,
    describeRoute({
      id: 'listExtensionDetails',
      tag: 'Extensions',
      summary: 'List extensions with all their fields and their registered phones',
      answer: listOf(extensionDetails, exampleDetails),
    }),
    read,
    validate('query', query),
    async (c) => {
      const { page, limit, search } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search }
      const scope = requestScope(c.var.principal, now)
      const list = () => storeOf(extensions, deps).list(scope, slice)
      const { rows, total } = await readApart(store, scope.tenantId, list)
      return ok(
        c,
        rows.map((view) => details(view, deps)),
        pageMeta({ page, limit }, total),
      )
    },
  )
}

function getExtensionDetailsRoute(deps: ChangeDeps) {
  const { now } = deps
  return new Hono<ControlEnv>().get(
    `${path}/:id/details`,
    describeRoute({
      id: 'getExtensionDetails',
      tag: 'Extensions',
      summary: 'Get an extension with its registered phones',
      answer: data(extensionDetails, exampleDetails),
    }),
    read,
    versioned(),
    one,
    async (c) => {
      const { id } = c.req.valid('param')
      const { view, version } = found(
        await storeOf(extensions, deps).versioned(requestScope(c.var.principal, now), id),
        noun,
      )
      showVersion(c, version)
      return ok(c, details(view, deps))
    },
  )
}

function deleteRegistrationRoute(deps: ChangeDeps) {
  const { now } = deps
  return new Hono<ControlEnv>().delete(
    `${path}/:id/registrations`,
    describeRoute({
      id: 'deleteRegistration',
      tag: 'Extensions',
      summary: 'Remove the registration of one phone; it may register again',
      answer: data(extensionDetails, exampleDetails),
    }),
    requires('extensions:write'),
    one,
    validate('query', registration),
    async (c) => {
      const { id } = c.req.valid('param')
      const { contact } = c.req.valid('query')
      const view = found(
        await storeOf(extensions, deps).find(requestScope(c.var.principal, now), id),
        noun,
      )
      const { domain, extension } = view
      if (!(await deps.engine.registrations.end(domain, extension, contact)))
        throw notFound('Registration')
      c.set('change', { before: { contact }, after: null })
      return ok(c, details(view, deps))
    },
  )
}

const details = (view: ExtensionView, { engine }: ChangeDeps) => ({
  ...view,
  recording_active: engine.recordings.isAvailable && view.call_recording === 'always',
  registrars: engine
    .reachedAt()
    .map(({ protocol, host, port }) => `sip:${hostPort(host, port)};transport=${protocol}`),
  ...contactsOf(engine.registrations.statusOf(view.domain, view.extension)),
})

/**
 * The fields of SPECIFICATION.md §4.1, and no others. `user_agent` is empty while no phone is
 * registered.
 */
const shapeOf = (view: ExtensionView, { status, userAgent }: ExtensionStatus) => ({
  id: view.id,
  extension: view.extension,
  display_name: view.display_name,
  voicemail_enabled: view.voicemail_enabled,
  status,
  user_agent: userAgent ?? '',
})

/** Details for an operator whose phone does not ring. */
const contactsOf = ({ status, contacts }: ExtensionStatus) => ({
  status,
  contacts: contacts.map(({ uri, userAgent, source, holder, expiresAt }) => ({
    uri,
    user_agent: userAgent,
    source: `${source.protocol}/${hostPort(source.address, source.port)}`,
    node: holder,
    expires_at: timeToText(expiresAt),
  })),
})
