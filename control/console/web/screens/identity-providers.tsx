/** Identity providers: where users sign in with an account that they have elsewhere. */
import type { IdentityProvider } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'

const noun: ScreenNoun<IdentityProvider & { readonly id: number }> = {
  one: 'identity provider',
  many: 'Identity providers',
  scope: 'users',
  about:
    'Users sign in with an account of such a provider (OpenID Connect). Its groups give the role.',
  effect: 'Its sessions end, and its users cannot sign in by it any more.',
  nameOf: ({ name }) => name,
  columns: [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true }),
    textColumn('issuer', 'Issuer', ({ issuer }) => issuer, { max: 80 }),
    textColumn('redirect', 'Redirect URI, for the provider', (each) => each.redirect_uri, {
      max: 120,
    }),
    textColumn('state', 'State', (each) => (each.is_enabled ? 'in use' : 'off'), {
      tone: (each) => (each.is_enabled ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/identity-providers',
    names: [
      'name',
      'tenant',
      'issuer',
      'client_id',
      'client_secret',
      'role_claim',
      'role_mappings',
    ],
    more: ['scopes', 'username_claim', 'is_enabled'],
    rows: { role_mappings: { one: 'mapping', names: ['value', 'role'] } },
    labels: {
      client_id: 'Client ID',
      client_secret: 'Client secret',
      role_claim: 'Claim with the groups',
      username_claim: 'Claim with the user name',
      role_mappings: 'Roles of groups',
      is_enabled: 'In use',
    },
    hints: { tenant: 'None: its users see the whole platform.' },
    words: {},
  },
}

export const IdentityProvidersScreen = () => <ResourceScreen noun={noun} />
