/**
 * Extensions: accounts of phones (SPECIFICATION.md §2.3 and §8). Passwords are stored only as
 * digest secrets.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute, first } from '../../schema/sql/query.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'
import { everywhere, type RequestScope, wrongTenant } from '../auth/tenants.ts'
import { ApiError } from '../http/api-error.ts'
import { domain, reference, text } from '../http/fields.ts'
import { moment } from '../http/view-fields.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { refuseBraked, refuseOtherPayer } from './braked.ts'
import { callerIdentity, ownNumber, refuseForeignCaller } from './caller-fields.ts'
import { mediaFields } from './media-fields.ts'
import { badReference, tenantOf } from './references.ts'
import { type Definition, ResourceStore, type ViewOf } from './resource.ts'
import { rowWith } from './table-rows.ts'

/** The numbers of extensions and AI agents. */
export const extensionNumber = z
  .string()
  .regex(/^(?:[0-9*#]{2,20}|\+[0-9*#]{1,19})$/, 'must be 2 to 20 digits, *, # or a leading +')

/**
 * Extensions and AI agents share the numbers of their tenant, so that a number has one destination.
 * Throws 409 when the other kind has this number in this tenant. `tenantId` null for the platform.
 */
export async function refuseTakenNumber(
  store: Store,
  other: 'extension' | 'ai_agent',
  number: string,
  tenantId: number | null,
): Promise<void> {
  if ((await rowWith(store, other, { extension: number, tenant_id: tenantId })) === undefined)
    return
  const owner = other === 'extension' ? 'an extension' : 'an AI agent'
  throw new ApiError(409, 'duplicate', 'Another resource has this extension', {
    details: [{ path: 'extension', message: `is already the number of ${owner}` }],
  })
}

const fields = field.table(
  {
    id: field.id,
    extension: field.required(field.asText(extensionNumber), { example: '100' }),
    password: field.written(
      z
        .string()
        .min(8)
        .max(128)
        .optional()
        .describe('Required at creation. Write only: stored as digest secrets.')
        .meta({ format: 'password' }),
    ),
    display_name: field.required(field.asText(text(100).min(1)), { example: 'Reception' }),
    voicemail_enabled: field.of(field.yesOrNo, { default: true }),
    call_recording: field.of(field.oneOf(['always', 'never', 'on_demand']), {
      default: 'always',
      about: 'Whether calls are recorded, where recording is set up.',
    }),
    email: field.optional(field.asText(z.email().max(254))),
    tenant: field.required(field.asText(reference.nullish()), { column: 'slug', example: 'acme' }),
    domain: field.required(field.asText(domain.nullish()), {
      about:
        'Absent: the domain of the key, or the only one of the tenant; required where it has ' +
        'several.',
      example: 'acme.example',
    }),
    customer: field.refersTo('customer', { about: 'The customer that pays for its calls.' }),
    customer_id: field.idOf(),
    caller_number: field.optional(ownNumber, {
      about: 'The number that its calls show outside.',
      example: '+4930100',
    }),
    caller_identity: callerIdentity,
    ...mediaFields,
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  {
    first: [
      'id',
      'extension',
      'domain',
      'tenant',
      'display_name',
      'email',
      'customer_id',
      'customer',
    ],
  },
)

type Body = z.output<typeof fields.body>

const registration = z.enum(['registered', 'unregistered'])

/** The fields of SPECIFICATION.md §4.1, and no others. */
const extensionShape = fields.view
  .pick({ id: true, extension: true, display_name: true, voicemail_enabled: true })
  .extend({
    status: registration,
    user_agent: z
      .string()
      .describe('User-Agent of the phone that registered last; empty when there is none.'),
  })
  .meta({ id: 'Extension' })

export const extensionDetails = fields.view
  .extend({
    recording_active: z
      .boolean()
      .describe(
        'Whether each call is recorded: `call_recording` is `always`, and recording is set up.',
      ),
    status: registration,
    registrars: z
      .array(z.string())
      .describe('Where its phones register, and send their calls: SIP URIs of this process.'),
    contacts: z.array(
      z.strictObject({
        uri: z.string(),
        user_agent: z.string(),
        source: z.string(),
        node: z
          .string()
          .nullable()
          .describe('The node that took the REGISTER; null: one of an earlier version.'),
        expires_at: moment,
      }),
    ),
  })
  .meta({ id: 'ExtensionDetails' })

export type ExtensionDetails = z.output<typeof extensionDetails>

export type ExtensionView = ViewOf<typeof fields.view>

export const extensions: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Extension',
  table: 'extension',
  path: '/pbx/extensions',
  scope: 'extensions',
  fields,
  hasOwnRoutes: true,
  domain: 'domain',
  found: {
    title: 'extension.extension',
    beside: ['extension.display_name', 'extension.domain', 'extension.email'],
    starts: ['extension.extension'],
    screen: 'phones',
    page: 'extension.id',
  },
  search: ['extension', 'display_name', 'extension.email'],
  order: ['extension', 'domain'],
  limits: ['extensions'],
  store: (deps) => new ExtensionStore(extensions, deps),
  async identify(extension, { store }) {
    const home = await homeOf(store, extension, everywhere)
    return rowWith(store, 'extension', { domain: home.domain, extension: extension.extension })
  },
  async check({ body: extension, before, scope, tenantId, columns, deps: { store } }) {
    const { extension: number, password } = extension
    if (before === undefined && password == null) throw badReference('password', 'is required')
    const home = await homeOf(store, extension, scope)
    await refuseTakenNumber(store, 'ai_agent', number, tenantId)
    await refuseForeignCaller(store, scope, extension, before, [
      ['caller_number', extension.caller_number, before?.caller_number],
    ])
    // The secrets contain number and domain.
    if (before !== undefined && isRenamed(before, number, home)) {
      if (password == null)
        throw badReference('password', 'is required with a new extension or domain')
      await refuseBraked(store, 'extension', before.id, scope)
    }
    if (before !== undefined) await refuseOtherPayer(store, before, payerIn(columns), scope)
    const secrets = password == null ? undefined : digestSecrets(number, home.domain, password)
    // Phones have registered with the old password. Here, so that no crash leaves them registered.
    if (before !== undefined && secrets && (await isNewSecret(before.id, secrets.sha256, store)))
      await execute(store, store.db.deleteFrom('binding').where('extension_id', '=', before.id))
    return {
      domain: home.domain,
      ...(secrets && { ha1_md5: secrets.md5, ha1_sha256: secrets.sha256 }),
    }
  },
  removing: ({ id }, scope, { store }) => refuseBraked(store, 'extension', id, scope),
  /**
   * Updates the phones and the payer of the number. Phones with the old password lose their
   * registration.
   */
  async follow({ engine, ocs }, { id }) {
    await engine.registrations.changed([id])
    await ocs?.reloadCustomers({ of: 'extension', ids: [id] })
  },
  beyond: whoPays,
  described: {
    tag: 'Extensions',
    shown: extensionShape,
    example: {
      id: 1,
      extension: '100',
      display_name: 'Reception',
      voicemail_enabled: true,
      status: 'registered',
      user_agent: 'Phone/1.0',
    },
    body: { extension: '100', password: 'correct horse', display_name: 'Reception' },
    patch: { display_name: 'Front desk' },
  },
}

class ExtensionStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  protected override async tenantOf(extension: Body, scope: RequestScope): Promise<number> {
    return (await homeOf(this.deps.store, extension, scope)).tenantId
  }

  override async isNewSecret(extensionId: number, { password }: Body): Promise<boolean> {
    if (password == null) return false
    const { store } = this.deps
    const query = store.db.selectFrom('extension').select(['extension', 'domain'])
    const row = await first(store, query.where('id', '=', extensionId))
    const secrets = digestSecrets(row?.extension ?? '', row?.domain ?? '', password)
    return isNewSecret(extensionId, secrets.sha256, store)
  }
}

/** Requires the scope that assigns numbers to paying customers. */
function whoPays({ before, after }: WrittenRow<ExtensionView>): readonly BeyondScope[] {
  return fieldsWhere([
    after.customer_id !== null && after.customer_id !== before?.customer_id,
    'customer',
    ['customers:write'],
  ])
}

const isRenamed = (before: ExtensionView, number: string, home: Home): boolean =>
  before.extension !== number || before.domain !== home.domain

const payerIn = ({ customer_id: id }: Row) => ({ customer_id: typeof id === 'number' ? id : null })

/**
 * The secrets A1 of HTTP digest, one per hash (RFC 8760, RFC 7616 §3.4.2). The realm is the
 * extension's domain.
 */
export function digestSecrets(user: string, realm: string, password: string) {
  const hashed = (algorithm: string) =>
    createHash(algorithm).update(`${user}:${realm}:${password}`, 'utf8').digest('hex')
  return { md5: hashed('md5'), sha256: hashed('sha256') }
}

async function isNewSecret(id: number, sha256: string, store: Store): Promise<boolean> {
  const query = store.db.selectFrom('extension').select('ha1_sha256').where('id', '=', id)
  return (await first(store, query))?.ha1_sha256 !== sha256
}

interface Home {
  readonly tenantId: number
  readonly domain: string
}

/**
 * Returns the domain that the writer is bound to, or that the body names, or else the only one of
 * the tenant; without a tenant, the only one at all. Throws 400, and 403 for a domain that the
 * writer may not use.
 */
async function homeOf(
  store: Store,
  { tenant, domain: named }: Pick<Body, 'tenant' | 'domain'>,
  scope: RequestScope,
): Promise<Home> {
  const tenantId = await tenantOf(store, tenant, scope)
  const bound = scope.domain ?? null
  if (bound !== null && named != null && named !== bound) throw wrongTenant()
  const wanted = bound ?? named ?? null
  const found = await all(
    store,
    store.db
      .selectFrom('tenant_domain')
      .selectAll()
      .$if(tenantId !== null, (query) => query.where('tenant_id', '=', tenantId ?? 0))
      .$if(wanted !== null, (query) => query.where('domain', '=', wanted ?? ''))
      .orderBy('domain')
      .limit(2),
  )
  const [home] = found
  if (home === undefined)
    throw badReference('domain', wanted === null ? noDomain(tenantId) : 'is unknown')
  if (tenantId === null && found.length > 1)
    throw badReference('tenant', 'is required, or a domain: there are several')
  if (found.length > 1) throw badReference('domain', 'is required: the tenant has several')
  return { tenantId: home.tenant_id, domain: home.domain }
}

const noDomain = (tenantId: number | null): string =>
  tenantId === null
    ? 'there is none yet: create a tenant with a domain first'
    : 'the tenant has none: give it one first'
