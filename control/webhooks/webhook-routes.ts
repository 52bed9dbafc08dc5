/** `/webhooks`: endpoints of accounting webhooks, and their deliveries. */
import { requestScope } from '../auth/tenants.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { readApart, transaction } from '../../schema/sql/query.ts'
import { type BeyondScope, refuseBeyondScope, requires } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import type { Principal } from '../auth/principal.ts'
import { mayGrant, type Scope } from '../auth/scopes.ts'
import { hostOr, viewEffect } from '../changes/field-words.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import { quoted } from '../http/clean-text.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok, endingMeta, offsetOf, pageMeta, pageQuery } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { refuseOtherVersion, showVersion, versioned, versionOf } from '../http/precondition.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { tenantOf } from '../resources/references.ts'
import { found, id, idParam } from '../resources/resource-routes.ts'
import {
  deliveryQuery,
  endpointFields,
  type EndpointChange,
  type EndpointPatch,
  endpointPatch,
  type EndpointRow,
  endpointView,
  type EndpointView,
  newEndpointBody,
  typesOf,
} from './endpoint-store.ts'
import { deliveryFields } from './delivery-store.ts'
import type { EventType } from '../../schema/contracts/engine.ts'
import { newSecret } from '../../schema/secrets/webhook-signature.ts'
import type { Webhooks } from './webhooks.ts'
import { data, list } from '../http/operation.ts'
import { exampleNewSecret, newSecretShown, rotateBody } from '../http/signing-secret.ts'
import { deleted } from '../http/resource-operations.ts'

const { view: endpointShown, example: exampleEndpoint } = endpointFields
const { view: deliveryView, example: exampleDelivery } = deliveryFields

const withSecret = endpointShown.extend(newSecretShown).meta({ id: 'WebhookEndpointWithSecret' })
const exampleSecret = { ...exampleEndpoint, ...exampleNewSecret }

type WebhookRoutesDeps = Pick<Platform, 'store' | 'now' | 'randomBytes'> & {
  readonly webhooks: Webhooks
}

const noun = 'Webhook endpoint'
const path = '/webhooks'
const deliveryParam = z.strictObject({ id: id(noun), deliveryId: id('Delivery') })

export function webhookRoutes(deps: WebhookRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', createWebhookEndpointRoute(deps))
    .route('/', listWebhookEndpointsRoute(deps))
    .route('/', getWebhookEndpointRoute(deps))
    .route('/', updateWebhookEndpointRoute(deps))
    .route('/', deleteWebhookEndpointRoute(deps))
    .route('/', rotateWebhookSecretRoute(deps))
    .route('/', testWebhookEndpointRoute(deps))
    .route('/', listWebhookDeliveriesRoute(deps))
    .route('/', retryWebhookDeliveryRoute(deps))
}

const createWebhookEndpointRoute = ({ store, webhooks, now, randomBytes }: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().post(
    path,
    describeRoute({
      id: 'createWebhookEndpoint',
      tag: 'Webhooks',
      summary: 'Create an endpoint',
      body: { url: 'https://crm.example/hook', events: ['call.ended'] },
      answer: data(withSecret, exampleSecret, 201),
      refusals: [409],
    }),
    write,
    validate('json', newEndpointBody(webhooks.allowPrivate)),
    repeatable({ shownOnce: 'secret' }),
    async (c) => {
      const body = c.req.valid('json')
      const scope = requestScope(c.var.principal, now)
      refuseUnreadable(c.var.principal, body.events)
      const approverId = body.approval_links ? approverOf(c.var.principal) : null
      const secret = newSecret(randomBytes)
      const after = await transaction(store, async () => {
        const tenantId = await tenantOf(store, body.tenant, scope)
        const newId = await webhooks.endpoints.insert(body, secret, tenantId, now(), approverId)
        return endpointView(found(await webhooks.endpoints.find(scope, newId), noun))
      })
      await webhooks.reload()
      noteEndpoint(c, null, after)
      return created(c, `/api/v1${path}/${after.id}`, { ...after, secret })
    },
  )

const listWebhookEndpointsRoute = ({ webhooks, now }: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().get(
    path,
    describeRoute({
      id: 'listWebhookEndpoints',
      tag: 'Webhooks',
      summary: 'List endpoints',
      answer: list(endpointShown, exampleEndpoint),
    }),
    read,
    validate('query', z.strictObject(pageQuery)),
    async (c) => {
      const page = c.req.valid('query')
      const slice = { limit: page.limit, offset: offsetOf(page) }
      const { rows, total } = await webhooks.endpoints.list(
        requestScope(c.var.principal, now),
        slice,
      )
      return ok(c, rows, pageMeta(page, total))
    },
  )

const getWebhookEndpointRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().get(
    `${path}/:id`,
    describeRoute({
      id: 'getWebhookEndpoint',
      tag: 'Webhooks',
      summary: 'Get an endpoint',
      answer: data(endpointShown, exampleEndpoint),
    }),
    read,
    versioned(),
    validate('param', idParam(noun)),
    async (c) => {
      const shown = endpointView(await endpointOf(deps, c.var.principal, c.req.valid('param').id))
      showVersion(c, versionOf(shown))
      return ok(c, shown)
    },
  )

const updateWebhookEndpointRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().patch(
    `${path}/:id`,
    describeRoute({
      id: 'updateWebhookEndpoint',
      tag: 'Webhooks',
      summary: 'Update an endpoint',
      body: { is_active: false },
      answer: data(endpointShown, exampleEndpoint),
    }),
    write,
    versioned(),
    validate('param', idParam(noun)),
    validate('json', endpointPatch(deps.webhooks.allowPrivate)),
    async (c) => {
      const change = c.req.valid('json')
      const after = await changed(c, deps, c.req.valid('param').id, (before) => {
        refuseOther(c, before)
        refuseUnreadable(c.var.principal, change.events ?? typesOf(before))
        return deps.webhooks.endpoints.update(
          before.id,
          withApprover(change, before, c.var.principal),
          deps.now(),
        )
      })
      showVersion(c, versionOf(after))
      return ok(c, after)
    },
  )

const deleteWebhookEndpointRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().delete(
    `${path}/:id`,
    describeRoute({
      id: 'deleteWebhookEndpoint',
      tag: 'Webhooks',
      summary: 'Delete an endpoint',
      answer: data(deleted, { id: 1, deleted: true }),
    }),
    write,
    versioned(),
    validate('param', idParam(noun)),
    async (c) => {
      const before = await transaction(deps.store, async () => {
        const found = await endpointOf(deps, c.var.principal, c.req.valid('param').id)
        refuseOther(c, found)
        if (!(await deps.webhooks.endpoints.remove(found.id, deps.now()))) throw notFound(noun)
        return found
      })
      await deps.webhooks.removed()
      noteEndpoint(c, endpointView(before), null)
      return ok(c, { id: before.id, deleted: true })
    },
  )

const rotateWebhookSecretRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().post(
    `${path}/:id/rotate`,
    describeRoute({
      id: 'rotateWebhookSecret',
      tag: 'Webhooks',
      summary: 'Rotate the secret. The old one stays valid during the overlap.',
      body: { overlap_seconds: 86_400 },
      answer: data(withSecret, exampleSecret),
    }),
    write,
    validate('param', idParam(noun)),
    validate('json', rotateBody),
    repeatable({ shownOnce: 'secret' }),
    async (c) => {
      const secret = newSecret(deps.randomBytes)
      const { overlap_seconds: overlap } = c.req.valid('json')
      const after = await changed(
        c,
        deps,
        c.req.valid('param').id,
        (before) => {
          refuseUnreadable(c.var.principal, typesOf(before))
          return deps.webhooks.endpoints.rotate(
            before,
            secret,
            deps.now() + overlap * 1_000,
            deps.now(),
          )
        },
        ['its secret'],
      )
      return ok(c, { ...after, secret })
    },
  )

const testWebhookEndpointRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().post(
    `${path}/:id/test`,
    describeRoute({
      id: 'testWebhookEndpoint',
      tag: 'Webhooks',
      summary: 'Send a test event',
      answer: data(z.strictObject({ webhook_id: z.string() }), { webhook_id: 'msg_1' }, 202),
      refusals: [409],
    }),
    write,
    validate('param', idParam(noun)),
    repeatable(),
    async (c) => {
      const endpoint = await endpointOf(deps, c.var.principal, c.req.valid('param').id)
      refuseInactive(endpoint)
      const webhookId = await deps.webhooks.sendTest(endpoint.id)
      return c.json({ success: true, data: { webhook_id: webhookId } }, 202)
    },
  )

const listWebhookDeliveriesRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().get(
    `${path}/:id/deliveries`,
    describeRoute({
      id: 'listWebhookDeliveries',
      tag: 'Webhooks',
      summary: 'List deliveries',
      answer: list(deliveryView, exampleDelivery),
    }),
    read,
    validate('param', idParam(noun)),
    validate('query', deliveryQuery),
    async (c) => {
      const { state, ...page } = c.req.valid('query')
      const endpoint = await endpointOf(deps, c.var.principal, c.req.valid('param').id)
      const slice = { limit: page.limit, offset: offsetOf(page) }
      const list = () => deps.webhooks.deliveries.list(endpoint.id, state, slice)
      const { rows, total } = await readApart(deps.store, c.var.principal.tenantId, list)
      return ok(c, rows, endingMeta(page, total))
    },
  )

const retryWebhookDeliveryRoute = (deps: WebhookRoutesDeps) =>
  new Hono<ControlEnv>().post(
    `${path}/:id/deliveries/:deliveryId/retry`,
    describeRoute({
      id: 'retryWebhookDelivery',
      tag: 'Webhooks',
      summary: 'Retry a delivery',
      answer: data(deliveryView, exampleDelivery, 202),
      refusals: [409],
    }),
    write,
    validate('param', deliveryParam),
    repeatable(),
    async (c) => {
      const { id: endpointId, deliveryId } = c.req.valid('param')
      const endpoint = await endpointOf(deps, c.var.principal, endpointId)
      const delivery = found(
        await deps.webhooks.deliveries.find(endpoint.id, deliveryId),
        'Delivery',
      )
      refuseInactive(endpoint)
      await deps.webhooks.retry(delivery.id)
      const after = found(await deps.webhooks.deliveries.find(endpoint.id, deliveryId), 'Delivery')
      return c.json({ success: true, data: after }, 202)
    },
  )

const read = requires('webhooks:read')
const write = requires('webhooks:write')

const endpointOf = async (
  { webhooks, now }: WebhookRoutesDeps,
  principal: Principal,
  id: number,
): Promise<EndpointRow> =>
  found(await webhooks.endpoints.find(requestScope(principal, now), id), noun)

/** Changes an endpoint as it is now, and puts the change into effect. */
async function changed(
  c: Context<ControlEnv>,
  deps: WebhookRoutesDeps,
  id: number,
  work: (before: EndpointRow) => Promise<void>,
  secrets: readonly string[] = [],
): Promise<EndpointView> {
  const change = await transaction(deps.store, async () => {
    const before = await endpointOf(deps, c.var.principal, id)
    await work(before)
    const after = await endpointOf(deps, c.var.principal, id)
    return { before: endpointView(before), after: endpointView(after) }
  })
  await deps.webhooks.reload()
  noteEndpoint(c, change.before, change.after, secrets)
  return change.after
}

/** @param secrets what was changed and is not shown. */
function noteEndpoint(
  c: Context<ControlEnv>,
  before: EndpointView | null,
  after: EndpointView | null,
  secrets: readonly string[] = [],
): void {
  const subject = `The webhook ${quoted(hostOr((before ?? after)?.url ?? ''))}`
  const effect = viewEffect(subject, before, after, secrets)
  c.set('change', { before, after, ...(effect !== undefined && { effect }) })
}

function refuseOther(c: Context<ControlEnv>, endpoint: EndpointRow): void {
  const shown = endpointView(endpoint)
  const isReader = c.var.principal.scopes.has('webhooks:read')
  refuseOtherVersion(c, { version: versionOf(shown), shown: isReader ? () => shown : undefined })
}

function refuseInactive({ is_active: isActive }: { readonly is_active: 0 | 1 }): void {
  if (isActive === 1) return
  throw conflict('endpoint_inactive', 'The endpoint is inactive')
}

/** A new URL switches links off: their user has not approved that receiver. */
function withApprover(
  { approval_links: links, ...change }: EndpointPatch,
  before: EndpointRow,
  principal: Principal,
): EndpointChange {
  if (links === true) return { ...change, approver_id: approverOf(principal) }
  const isOtherUrl = change.url !== undefined && change.url !== before.url
  return links === false || isOtherUrl ? { ...change, approver_id: null } : change
}

/** Links act for a person: no program can have them sent, and they need the person's scopes. */
function approverOf(principal: Principal): number {
  if (principal.kind !== 'user')
    throw new ApiError(
      403,
      'person_required',
      'Only a signed-in user can have approval links sent',
      {
        details: [{ path: 'approval_links', message: 'requires the session of a user' }],
      },
    )
  refuseBeyondScope(principal, [{ field: 'approval_links', scopes: ['proposals:write'] }])
  return principal.userId
}

/** Maps a type of event to the scopes that read the same data by the other routes. */
const readScopes: Readonly<Record<string, readonly Scope[]>> = {
  call: ['cdrs:read'],
  wallet: ['wallets:read'],
  dispatcher: ['dispatcher:read'],
  key: ['keys:read'],
  proposal: ['proposals:read'],
  payment: ['wallets:read'],
  rerating: ['rates:read'],
  carrier: ['carriers:read'],
  registration: ['extensions:read', 'carriers:read'],
  // Findings are about all of these.
  finding: [
    'cdrs:read',
    'customers:read',
    'wallets:read',
    'keys:read',
    'audit:read',
    'dispatcher:read',
    'carriers:read',
    'extensions:read',
    'metrics:read',
    'rates:read',
  ],
}

/** Throws 403 unless the principal may read the events of an endpoint. */
function refuseUnreadable(principal: Principal, types: readonly (EventType | '*')[]): void {
  // The endpoint also receives event types that are added later.
  if (types.includes('*') && !mayGrant(principal.scopeLabels, '*:read'))
    throw new ApiError(
      403,
      'insufficient_scope',
      'Only a credential with *:read can receive every event',
      {
        details: [{ path: 'events', message: 'contains "*": list the events instead' }],
      },
    )
  const scopes = new Set(types.flatMap((type) => readScopes[type.split('.', 1)[0] ?? ''] ?? []))
  refuseBeyondScope(
    principal,
    [...scopes].map((scope): BeyondScope => ({ field: 'events', scopes: [scope] })),
  )
}
