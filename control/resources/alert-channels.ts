/** Alert channels: ways to people (e-mail, Slack, PagerDuty, a webhook of their own). */
import { z } from 'zod'
import { problemOfUrl } from '../../schema/net/http-target.ts'
import { channelKinds } from '../../schema/contracts/alert-kinds.ts'
import { isPublicAddress } from '../../schema/net/ip-address.ts'
import { isSecret, newSecret } from '../../schema/secrets/webhook-signature.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, first } from '../../schema/sql/query.ts'
import { host, isAddress, port, text } from '../http/fields.ts'
import { type Column, json, type Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { newSecretShown } from '../http/signing-secret.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'

const address = z.email().max(254)
const recipients = z
  .array(address)
  .min(1)
  .max(20)
  .transform((all) => [...new Set(all)])

const hasSecret: Column = { read: (row) => row['secret'] !== null }

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, { example: 'On call' }),
    tenant: field.tenant({ about: 'Only rules of this tenant use it.' }),
    kind: field.required(field.oneOf(channelKinds), {
      isOnlyAtCreation: true,
      example: 'email',
    }),
    to: field.optional(
      { body: recipients, view: z.array(z.string()), stored: json },
      {
        column: 'recipients',
        about: 'E-mail: the addresses of those who get it, 20 at most.',
        example: ['noc@example.com'],
      },
    ),
    from: field.optional(field.asText(address), {
      column: 'sender',
      about:
        'E-mail: the address of the sender. Absent: that of the installation (`SMTP_FROM`). A ' +
        'tenant gives one with its own mail server alone.',
    }),
    smtp_host: field.optional(field.asText(host), {
      about: 'E-mail: the mail server. Absent: that of the installation (`SMTP_URL`).',
    }),
    smtp_port: field.optional(
      { body: port, view: z.int() },
      {
        about: 'The port of the mail server. Absent: 587; 465 with TLS from the start.',
      },
    ),
    smtp_tls: field.optional(field.oneOf(['starttls', 'tls', 'none']), {
      about:
        'How the mail server is spoken to: `starttls` (required, and the default), TLS from the ' +
        'start, or without encryption and password.',
    }),
    smtp_user: field.optional(field.text(200), {
      about: 'The user at the mail server; its password is the secret.',
    }),
    url: field.optional(field.asText(z.string().min(1).max(2_000)), {
      about:
        'Webhook: where it is sent to. PagerDuty: another address of its Events API v2, such as ' +
        'that of the EU.',
    }),
    secret: field.written(text(2_000).min(1).meta({ format: 'password' }).optional(), {
      isStoredElsewhere: true,
      about:
        'No answer shows it. E-mail: the password at the mail server. Slack: the address of the ' +
        'incoming webhook. PagerDuty: the integration key. Webhook: the signing secret `whsec_…` ' +
        'of Standard Webhooks; absent at creation: one is generated, and shown in that response ' +
        'alone. Absent in an update: the stored one stays.',
    }),
    has_secret: field.shown(z.boolean(), { stored: () => hasSecret, example: true }),
    is_enabled: field.of(field.yesOrNo, {
      default: true,
      about: 'While it is not enabled, what is for it waits, seven days at most.',
    }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'AlertChannel' },
)

type ChannelWriting = Writing<typeof fields.body, typeof fields.view>
type ChannelBody = z.output<typeof fields.body>
export type AlertChannelView = ViewOf<typeof fields.view>

export const alertChannels: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Alert channel',
  table: 'alert_channel',
  path: '/alert-channels',
  scope: 'webhooks',
  fields,
  hasOwnRoutes: true,
  search: ['alert_channel.name'],
  order: ['alert_channel.name'],
  limits: ['alert_channels'],
  store: (deps) => new AlertChannelStore(alertChannels, deps),
  check: refuseUnusable,
  written: putSecret,
  follow: async ({ alerts }) => alerts?.reload(),
  described: {
    tag: 'Alerts',
    created: {
      shown: fields.view.extend(newSecretShown).meta({ id: 'AlertChannelWithSecret' }),
      example: fields.example,
    },
    body: { name: 'On call', kind: 'email', to: ['noc@example.com'] },
    patch: { is_enabled: false },
  },
}

class AlertChannelStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  override async isNewSecret(id: number, { secret }: ChannelBody): Promise<boolean> {
    return secret !== undefined && secret !== (await channelSecret(this.deps.store, id))
  }
}

type Kind = AlertChannelView['kind']

/** The fields that only one kind, or two, have. */
const fieldsOfKind: Readonly<Record<string, readonly Kind[]>> = {
  to: ['email'],
  from: ['email'],
  smtp_host: ['email'],
  smtp_port: ['email'],
  smtp_tls: ['email'],
  smtp_user: ['email'],
  url: ['pagerduty', 'webhook'],
}

/** It refuses what nobody may be sent to, and fields that would have no effect. */
async function refuseUnusable(writing: ChannelWriting): Promise<Row | undefined> {
  const { body, before } = writing
  const given: Row = body
  for (const [name, kinds] of Object.entries(fieldsOfKind))
    if (given[name] != null && !kinds.includes(body.kind))
      throw badReference(name, `is only for ${kinds.join(' and ')}`)
  checkByKind[body.kind](writing)
  if (before === undefined) return { secret: null }
  const moved = before.has_secret ? movedTo(before, body) : undefined
  if (moved !== undefined && body.secret === undefined)
    throw badReference('secret', `is required again, because ${moved} changes where it is sent`)
  return undefined
}

const checkByKind: Readonly<Record<Kind, (writing: ChannelWriting) => void>> = {
  email: refuseUnusableMail,
  slack: ({ body: { secret }, before, deps }) => {
    if (secret === undefined && before === undefined)
      throw badReference('secret', 'is required: the address of the incoming webhook')
    if (secret !== undefined) refuseUrl('secret', secret, deps.allowsPrivateTargets)
  },
  pagerduty: ({ body: { url, secret }, before, deps }) => {
    if (secret === undefined && before === undefined)
      throw badReference('secret', 'is required: the integration key of PagerDuty')
    if (secret !== undefined && !/^[0-9A-Za-z]{16,64}$/.test(secret))
      throw badReference('secret', 'must be an integration key: 32 letters and digits')
    if (url != null) refuseUrl('url', url, deps.allowsPrivateTargets)
  },
  webhook: ({ body: { url, secret }, before, deps }) => {
    if (url == null) throw badReference('url', 'is required')
    refuseUrl('url', url, deps.allowsPrivateTargets)
    if (secret !== undefined && !isSecret(secret))
      throw badReference('secret', 'must be whsec_ and 24 to 64 bytes in base64')
    if (secret === undefined && before === undefined && deps.randomBytes === undefined)
      throw badReference('secret', 'is required: nothing would show a new one')
  },
}

function refuseUrl(path: string, url: string, allowsPrivate: boolean): void {
  const problem = problemOfUrl(url, allowsPrivate)
  if (problem !== undefined) throw badReference(path, problem)
}

/** Mail servers of others do not use ports of the system apart from these. */
const mailPorts: ReadonlySet<number> = new Set([25, 465, 587])

function refuseUnusableMail({ body, deps, tenantId }: ChannelWriting): void {
  const { smtp_host, smtp_port, smtp_tls, smtp_user, from, secret } = body
  if (body.to == null) throw badReference('to', 'is required')
  if (smtp_host == null) {
    const stray = Object.entries({ smtp_port, smtp_tls, smtp_user, secret }).find(
      ([, value]) => value != null,
    )
    if (stray !== undefined) throw badReference(stray[0], 'is only allowed with smtp_host')
    // By the server of the installation it would write in anybody's name.
    if (from != null && tenantId !== null)
      throw badReference('from', 'is only allowed with smtp_host')
    return
  }
  const isInside = isAddress(smtp_host) ? !isPublicAddress(smtp_host) : isLocal(smtp_host)
  if (isInside && !deps.allowsPrivateTargets)
    throw badReference('smtp_host', 'must not be a private or local address')
  if (smtp_port != null && smtp_port < 1_024 && !mailPorts.has(smtp_port))
    throw badReference('smtp_port', 'must be 25, 465, 587 or at least 1024')
  if (from == null) throw badReference('from', 'is required with smtp_host')
  if (smtp_tls === 'none' && (smtp_user != null || secret !== undefined))
    throw badReference('smtp_tls', 'must not be none with a password')
}

const isLocal = (name: string): boolean =>
  /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/.test(name)

/** The field by which a stored secret would get to somebody else. */
function movedTo(before: AlertChannelView, body: ChannelBody): string | undefined {
  const earlier: Row = before
  const given: Row = body
  const decisive: readonly string[] =
    body.kind === 'email'
      ? ['smtp_host', 'smtp_port', 'smtp_tls']
      : body.kind === 'pagerduty'
        ? ['url']
        : []
  return decisive.find((name) => (earlier[name] ?? null) !== (given[name] ?? null))
}

const placeOf = (row: number) => ({ table: 'alert_channel', column: 'secret', row }) as const

async function putSecret(id: number, { body, before, deps }: ChannelWriting): Promise<void> {
  const { secrets, db } = deps.store
  if (body.secret === undefined && (before !== undefined || body.kind !== 'webhook')) return
  const secret = body.secret ?? (deps.randomBytes && newSecret(deps.randomBytes))
  if (secret === undefined) return
  const sealed = secrets.seal(placeOf(id), secret)
  await execute(
    deps.store,
    db.updateTable('alert_channel').set({ secret: sealed }).where('id', '=', id),
  )
}

/** Undefined: it has none, or it cannot be read with the key of the secrets. */
export async function channelSecret(store: Store, id: number): Promise<string | undefined> {
  const query = store.db.selectFrom('alert_channel').select('secret').where('id', '=', id)
  const row = await first(store, query)
  return row?.secret == null ? undefined : openedSecret(store, id, row.secret)
}

export const openedSecret = (store: Store, id: number, sealed: string): string | undefined =>
  store.secrets.open(placeOf(id), sealed)
