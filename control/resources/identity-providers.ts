/** Identity providers: by which OpenID Connect providers users sign in, and as what. */
import { z } from 'zod'
import { problemOfUrl } from '../../schema/net/http-target.ts'
import type { Store } from '../../schema/storage/store.ts'
import { first } from '../../schema/sql/query.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'
import { endSessionsOf } from '../auth/seen-sessions.ts'
import { putClientSecret, secretPlace } from '../auth/single-sign-on/identity-store.ts'
import { roleMappings, scopesOf, shownMappings } from '../auth/single-sign-on/role-mappings.ts'
import { json, type Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { text } from '../http/fields.ts'
import { badReference } from './references.ts'
import { type Definition, ResourceStore, type ViewOf, type Writing } from './resource.ts'

const claim = text(100).min(1)
const scopeName = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, 'must be a scope')

const fields = field.table(
  {
    id: field.id,
    name: field.required(field.name, {
      about: 'The button of the sign-in says: Sign in with …',
      example: 'Company login',
    }),
    tenant: field.tenant({
      about: 'Users of this tenant sign in by it. Absent: users of the platform.',
    }),
    issuer: field.required(field.asText(z.string().min(1).max(500)), {
      about:
        'URL of the provider, exactly as it names itself in its tokens. It is read at ' +
        '`/.well-known/openid-configuration` below.',
      example: 'https://login.example.com',
    }),
    client_id: field.required(field.asText(text(200).min(1)), { example: 'tollgate' }),
    client_secret: field.written(
      z.string().min(1).max(500).nullish().meta({ format: 'password' }),
      {
        isStoredElsewhere: true,
        about:
          'Stored encrypted, and never shown. Absent in an update: the stored one stays, unless ' +
          'the issuer changes. Null: the client has none.',
      },
    ),
    scopes: field.of(
      {
        body: z
          .array(scopeName)
          .max(20)
          .refine((scopes) => scopes.includes('openid'), 'must contain openid'),
        view: z.array(z.string()),
        stored: json,
      },
      { default: ['openid', 'profile', 'email'] },
    ),
    role_claim: field.of(field.asText(claim), {
      default: 'groups',
      about: 'Claim with the groups of a person; names within others have dots between them.',
    }),
    username_claim: field.of(field.asText(claim), { default: 'preferred_username' }),
    role_mappings: field.required(
      { body: roleMappings, view: shownMappings, stored: json },
      {
        about:
          'Which value of the claim gives which role; the first that matches holds. Whoever has ' +
          'none of them is refused.',
        example: [{ value: 'voice-admins', role: 'operator', tenant: null }],
      },
    ),
    is_enabled: field.of(field.yesOrNo, { default: true }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { first: ['id', 'name'] },
)

export const liveIdentityProviderView = fields.view
  .extend({
    redirect_uri: z
      .string()
      .nullable()
      .describe('To be registered at the provider. Null: `PUBLIC_URL` is not set.'),
  })
  .meta({ id: 'IdentityProvider' })

export type LiveProvider = z.output<typeof liveIdentityProviderView>
export type IdentityProviderView = ViewOf<typeof fields.view>
type ProviderWriting = Writing<typeof fields.body, typeof fields.view>

export const identityProviders: Definition<typeof fields.body, typeof fields.view> = {
  noun: 'Identity provider',
  table: 'identity_provider',
  path: '/identity-providers',
  scope: 'users',
  fields,
  hasOwnRoutes: true,
  search: ['identity_provider.name', 'identity_provider.issuer'],
  order: ['identity_provider.name'],
  limits: ['identity_providers'],
  store: (deps) => new IdentityProviderStore(identityProviders, deps),
  check: refuseUnusable,
  written: putSecret,
  removing: async ({ id }, { now }, { store }) => endSessionsOf(store, id, now),
  beyond: givenAway,
  described: {
    tag: 'Users',
    shown: liveIdentityProviderView,
    example: {
      ...fields.example,
      redirect_uri: 'https://tollgate.example/api/v1/auth/callback/1',
    },
    body: {
      name: 'Company login',
      issuer: 'https://login.example.com',
      client_id: 'tollgate',
      client_secret: 'a secret of the provider',
      role_mappings: [{ value: 'voice-admins', role: 'operator' }],
    },
    patch: { is_enabled: false },
  },
}

class IdentityProviderStore extends ResourceStore<typeof fields.body, typeof fields.view> {
  override async isNewSecret(id: number, { client_secret: given }: z.output<typeof fields.body>) {
    return given !== undefined && given !== (await secretOf(this.deps.store, id))
  }
}

/** Entra ID for accounts of all directories, each of which gives its own roles. */
const ofManyIssuers = /^https:\/\/login\.microsoftonline\.com\/+(common|organizations|consumers)\b/i

/** It refuses what nobody could sign in by, and what would give away users of others. */
async function refuseUnusable(writing: ProviderWriting): Promise<Row | undefined> {
  const { body, before, tenantId, deps } = writing
  const problem = problemOfUrl(body.issuer, deps.allowsPrivateTargets)
  if (problem !== undefined) throw badReference('issuer', problem)
  const { protocol, search } = new URL(body.issuer)
  if (search !== '') throw badReference('issuer', 'must not have a query')
  if (protocol !== 'https:' && !deps.allowsPrivateTargets)
    throw badReference('issuer', 'must be an https URL')
  if (ofManyIssuers.test(body.issuer))
    throw badReference('issuer', 'must name one directory: in this one anybody gives roles')
  for (const [index, { tenant }] of body.role_mappings.entries())
    if (tenant != null) await refuseForeign(deps.store, tenant, tenantId, index)
  const isMoved = before !== undefined && before.issuer !== body.issuer
  if (isMoved && body.client_secret === undefined && (await secretOf(deps.store, before.id)))
    throw badReference('client_secret', 'is required with another issuer, which would be sent it')
  return undefined
}

async function refuseForeign(
  store: Store,
  slug: string,
  tenantId: number | null,
  index: number,
): Promise<void> {
  const query = store.db.selectFrom('tenant').select('id').where('slug', '=', slug)
  const id = (await first(store, query))?.id
  // The same words for a tenant of others and for none.
  if (id === undefined || (tenantId !== null && id !== tenantId))
    throw badReference(`role_mappings.${index}.tenant`, 'is not a tenant whose users sign in here')
}

/** Whoever maps a role gives its scopes away, and must have them. */
function givenAway({ before, after }: WrittenRow<IdentityProviderView>): readonly BeyondScope[] {
  const isChanged = before === undefined || isDecisive(before, after)
  const roles = after.role_mappings as Parameters<typeof scopesOf>[0]
  return fieldsWhere(
    ...scopesOf(roles).map((scope) => [isChanged, 'role_mappings', [scope]] as const),
  )
}

const decisive = ['issuer', 'client_id', 'role_claim', 'role_mappings', 'is_enabled'] as const

/** Whether it says anew who signs in, or as what. */
const isDecisive = (before: IdentityProviderView, after: Record<string, unknown>): boolean =>
  decisive.some((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))

async function putSecret(id: number, writing: ProviderWriting): Promise<void> {
  const {
    body,
    before,
    deps: { store },
    scope: { now },
  } = writing
  if (body.client_secret !== undefined) await putClientSecret(store, id, body.client_secret)
  // Who is signed in got the role by what was said before.
  if (before !== undefined && isDecisive(before, body)) await endSessionsOf(store, id, now)
}

/** Null: there is none, or it cannot be read with the key of the secrets. */
async function secretOf(store: Store, id: number): Promise<string | null> {
  const query = store.db.selectFrom('identity_provider').select('client_secret')
  const row = await first(store, query.where('id', '=', id))
  if (row === undefined || row.client_secret === null) return null
  return store.secrets.open(secretPlace(id), row.client_secret) ?? null
}
