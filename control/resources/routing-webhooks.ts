/**
 * Routing webhooks: receivers that are asked, for each call from their scope, where it goes. The
 * questions and answers are those of `schema/contracts/hooks.ts`.
 */
import { z } from 'zod'
import { timeToText } from '../../schema/columns.ts'
import {
  cacheKeyParts,
  type RoutingWebhookStatus,
  type RoutingWebhooksPort,
} from '../../schema/contracts/routing-webhooks.ts'
import { problemOfUrl, unusablePort } from '../../schema/net/http-target.ts'
import { isSecret, newSecret } from '../../schema/secrets/webhook-signature.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, first } from '../../schema/sql/query.ts'
import type { BeyondScope, WrittenRow } from '../auth/requires.ts'
import { everywhere } from '../auth/tenants.ts'
import { reference } from '../http/fields.ts'
import { exampleNewSecret, newSecretShown } from '../http/signing-secret.ts'
import { count, moment } from '../http/view-fields.ts'
import { json, type Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { badReference, either, resolve } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'

const secret = z
  .string()
  .refine(isSecret, 'must be whsec_ and 24 to 64 bytes in base64')
  .meta({ format: 'password' })

const cacheKey = z
  .array(z.enum(cacheKeyParts))
  .min(1)
  .max(cacheKeyParts.length)
  .transform((parts) => [...new Set(parts)])

const fields = field.table(
  {
    id: field.id,
    url: field.required(field.asText(z.string().min(1).max(2_000)), {
      about: 'It gets a POST with the call as JSON, and answers 200 with a decision, or 204.',
      example: 'https://crm.example/route',
    }),
    description: field.optional(field.text(500)),
    tenant: field.tenant({ about: 'It is asked about calls of this tenant alone.' }),
    carrier: field.refersTo('carrier', {
      about: 'It is asked about calls from this carrier. With `set`: not allowed.',
    }),
    carrier_id: field.idOf(),
    set: field.written(reference.nullish(), {
      refersTo: 'dispatcher_set',
      about:
        'Number or name of a dispatcher set: it is asked about calls from its nodes. Without ' +
        'carrier and set it is asked about all other calls of its tenant, or of the platform.',
    }),
    set_id: field.idOf(),
    timeout_ms: field.of(field.integer(20, 2_000), {
      default: 200,
      about: 'How long a call waits for the answer, with DNS and connection.',
    }),
    fallback: field.of(field.oneOf(['continue', 'refuse']), {
      default: 'continue',
      about:
        'What holds without an answer in time: the call goes on, or it is refused with 503 and ' +
        'Retry-After.',
    }),
    cache_seconds: field.of(field.integer(0, 86_400), {
      default: 0,
      about: 'How long an answer holds for further calls with the same key. 0: for none.',
    }),
    cache_key: field.of(
      { body: cacheKey, view: z.array(z.enum(cacheKeyParts)), stored: json },
      {
        default: ['from', 'to'],
        about: 'Parts of a call that make the key, beside the tenant and the called domain.',
      },
    ),
    enabled: field.of(field.yesOrNo, { column: 'is_enabled', default: true }),
    secret: field.written(secret.optional(), {
      isStoredElsewhere: true,
      about:
        'Signs the requests as Standard Webhooks say. Absent at creation: one is generated, and ' +
        'shown in that response alone; a seed file has to name it. Absent in an update: the ' +
        'stored one stays.',
    }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { first: ['id', 'url', 'description'] },
)

type RoutingWebhookWriting = Writing<typeof fields.body, typeof fields.view>
type RoutingWebhookView = ViewOf<typeof fields.view>

const statusView = z
  .strictObject({
    calls: count.describe('Calls that it was asked about, those answered from memory included.'),
    decided: count.describe('Answers with a decision.'),
    failed: count.describe('Calls without an answer that is allowed: the fallback held.'),
    timeouts: count.describe('Those of them without an answer in time.'),
    skipped: count.describe('Those of them that were not sent: too many, or after failures.'),
    cache_hits: count,
    mean_ms: z.number().min(0).nullable().describe('Mean time of the requests. Null: none yet.'),
    is_resting: z.boolean().describe('It is not asked for a while, because it failed repeatedly.'),
    last_failure: z.strictObject({ at: moment, reason: z.string() }).nullable(),
  })
  .describe('Figures of this process since its start, or since the last change.')

export const liveRoutingWebhookView = fields.view
  .extend({ status: statusView.nullable().describe('Null: it is not in use.') })
  .meta({ id: 'RoutingWebhook' })

export type LiveRoutingWebhook = z.output<typeof liveRoutingWebhookView>

const exampleRoutingWebhook = {
  ...fields.example,
  status: {
    calls: 1_000,
    decided: 40,
    failed: 1,
    timeouts: 1,
    skipped: 0,
    cache_hits: 700,
    mean_ms: 21.5,
    is_resting: false,
    last_failure: null,
  },
}

export const routingWebhookWithSecret = liveRoutingWebhookView
  .extend(newSecretShown)
  .meta({ id: 'RoutingWebhookWithSecret' })

export const exampleRoutingWebhookSecret = { ...exampleRoutingWebhook, ...exampleNewSecret }

export const routingWebhooks: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Routing webhook',
  table: 'routing_webhook',
  path: '/routing-webhooks',
  scope: 'webhooks',
  kind: 'routing_webhook',
  fields,
  hasOwnRoutes: true,
  found: {
    title: 'routing_webhook.url',
    beside: ['routing_webhook.description'],
    screen: 'routing-webhooks',
  },
  search: ['routing_webhook.url', 'routing_webhook.description'],
  order: ['routing_webhook.id'],
  limits: ['routing_webhooks'],
  store: (deps) => new RoutingWebhookStore(routingWebhooks, deps),
  check: refuseUnusable,
  written: putSecret,
  beyond: decidesCalls,
  follow: ({ engine }) => engine.routingWebhooks.reload(),
  described: {
    tag: 'Webhooks',
    shown: liveRoutingWebhookView,
    example: exampleRoutingWebhook,
    created: { shown: routingWebhookWithSecret, example: exampleRoutingWebhookSecret },
    body: { url: 'https://crm.example/route', timeout_ms: 300 },
    patch: { cache_seconds: 60 },
  },
}

class RoutingWebhookStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  override async isNewSecret(id: number, { secret: given }: z.output<typeof fields.body>) {
    return given !== undefined && given !== (await secretOf(this.deps.store, id))
  }

  /** A webhook has no name: it is known by its scope. */
  override async identify(body: z.output<typeof fields.body>): Promise<number | undefined> {
    const tenantId = await this.tenantOf(body, everywhere)
    const owner = { tenantId, scope: everywhere }
    const { store } = this.deps
    const carrier = either('carrier', body.carrier, body.carrier_id)
    const set = either('set', body.set, body.set_id)
    return this.idOf({
      tenant_id: tenantId,
      carrier_id: await resolve(store, 'carrier', carrier, owner),
      set_id: await resolve(store, 'dispatcher_set', set, { ...owner, path: 'set' }),
    })
  }
}

/** It refuses what nobody may be asked at, and scopes of somebody else. */
async function refuseUnusable(writing: RoutingWebhookWriting): Promise<Row | undefined> {
  const { body, before, columns, tenantId, deps } = writing
  const problem =
    problemOfUrl(body.url, deps.allowsPrivateTargets) ??
    (body.url === before?.url ? undefined : unusablePort(body.url))
  if (problem !== undefined) throw badReference('url', problem)
  const { carrier_id: carrierId, set_id: setId } = columns
  if (carrierId != null && setId != null)
    throw badReference('set', 'is not allowed with carrier: give one of them')
  const { db } = deps.store
  if (typeof carrierId === 'number')
    refuseOtherOwner(
      'carrier',
      await first(
        deps.store,
        db.selectFrom('carrier').select('tenant_id').where('id', '=', carrierId),
      ),
      tenantId,
    )
  if (typeof setId === 'number')
    refuseOtherOwner(
      'set',
      await first(
        deps.store,
        db.selectFrom('dispatcher_set').select('tenant_id').where('set_id', '=', setId),
      ),
      tenantId,
    )
  // The secret is encrypted for its row, which does not exist yet.
  return before === undefined ? { secret: '' } : undefined
}

/** A decision holds within its owner: calls of a carrier of another owner are not its to decide. */
function refuseOtherOwner(
  path: string,
  row: { readonly tenant_id: number | null } | undefined,
  tenantId: number | null,
): void {
  if (row !== undefined && row.tenant_id === tenantId) return
  throw badReference(path, 'belongs to another tenant than the webhook')
}

/** Who may have calls sent elsewhere, and told to a receiver, needs the scopes for both. */
function decidesCalls({ before, after }: WrittenRow<RoutingWebhookView>): readonly BeyondScope[] {
  const field = before === undefined ? 'url' : decisive.find((name) => before[name] !== after[name])
  if (field === undefined) return []
  return [
    { field, scopes: ['routes:write'] },
    { field, scopes: ['cdrs:read'] },
  ]
}

/** Whoever changes one of these has other calls decided, or by somebody else. */
const decisive = ['url', 'enabled', 'tenant', 'carrier_id', 'set_id'] as const

const placeOf = (row: number, column: 'secret' | 'previous_secret') =>
  ({ table: 'routing_webhook', column, row }) as const

async function putSecret(id: number, { body, before, deps }: RoutingWebhookWriting) {
  const { randomBytes } = deps
  if (body.secret === undefined && before !== undefined) return
  const given = body.secret ?? (randomBytes && newSecret(randomBytes))
  if (given === undefined) throw badReference('secret', 'is required: nothing would show a new one')
  const sealed = deps.store.secrets.seal(placeOf(id, 'secret'), given)
  await setColumns(deps.store, id, {
    secret: sealed,
    previous_secret: null,
    previous_secret_expires_at: null,
  })
}

/** Undefined: it cannot be read with the key of the secrets. */
export async function secretOf(store: Store, id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('routing_webhook').select('secret').where('id', '=', id)
  const row = await first(store, query)
  return row && store.secrets.open(placeOf(id, 'secret'), row.secret)
}

/** Both secrets sign until the old one expires. */
export async function rotateSecret(
  store: Store,
  id: number,
  fresh: string,
  { now, oldExpiresAt }: { readonly now: number; readonly oldExpiresAt: number },
): Promise<void> {
  const old = oldExpiresAt <= now ? undefined : await secretOf(store, id)
  const { secrets } = store
  await setColumns(store, id, {
    secret: secrets.seal(placeOf(id, 'secret'), fresh),
    previous_secret: old === undefined ? null : secrets.seal(placeOf(id, 'previous_secret'), old),
    previous_secret_expires_at: old === undefined ? null : oldExpiresAt,
    updated_at: now,
  })
}

async function setColumns(
  store: Store,
  id: number,
  columns: {
    readonly secret: string
    readonly previous_secret: string | null
    readonly previous_secret_expires_at: number | null
    readonly updated_at?: number
  },
): Promise<void> {
  await execute(store, store.db.updateTable('routing_webhook').set(columns).where('id', '=', id))
}

/** The webhook with its figures from the engine. */
export function withFigures(
  webhook: RoutingWebhookView,
  engine: Pick<RoutingWebhooksPort, 'statusOf'>,
): LiveRoutingWebhook {
  const status = engine.statusOf(webhook.id)
  return { ...webhook, status: status === undefined ? null : shownStatus(status) }
}

function shownStatus({ lastFailure, ...figures }: RoutingWebhookStatus) {
  return {
    calls: figures.calls,
    decided: figures.decided,
    failed: figures.failed,
    timeouts: figures.timeouts,
    skipped: figures.skipped,
    cache_hits: figures.cacheHits,
    mean_ms: figures.requests === 0 ? null : round(figures.totalMs / figures.requests),
    is_resting: figures.isResting,
    last_failure: lastFailure && {
      at: timeToText(lastFailure.at),
      reason: lastFailure.reason,
    },
  }
}

const round = (ms: number): number => Math.round(ms * 10) / 10
