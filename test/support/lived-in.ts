/**
 * What an installation has that has been in use for a while, made by its API: one or more of each
 * thing that the console shows, beside those of a demo.
 */
import type { Page } from 'playwright-core'
import { postFrom } from './console-browser.ts'
import { authorityPem, rfcKey } from './stir-fixtures.ts'

type Made = readonly [path: string, body: Readonly<Record<string, unknown>>]

const TENANT = 'hotel-astoria'
const DOMAIN = 'astoria.example'
/** Nothing listens there: it is out of service, as some carrier always is. */
const deadGateway = { host: '127.0.0.9', port: 5090 }

const access: readonly Made[] = [
  ['/tenants', { slug: TENANT, domains: [DOMAIN, 'sip.astoria.example'] }],
  ['/users', { username: 'olga', password: 'correct horse battery', role: 'operator' }],
  [
    '/users',
    {
      username: 'reception-manager',
      password: 'correct horse battery',
      role: 'auditor',
      tenant_slug: TENANT,
    },
  ],
  ['/application-keys', { name: 'nightly-billing-export', scopes: ['cdrs:read'] }],
  ['/application-keys', { name: 'ci', scopes: ['*:read'] }],
  ['/webhooks', { url: 'https://hooks.astoria.example/tollgate/events', tenant: TENANT }],
  [
    '/identity-providers',
    {
      name: 'Company',
      issuer: 'https://login.astoria.example/realms/staff',
      client_id: 'tollgate',
      client_secret: 'a secret of the provider',
      role_mappings: [
        { value: 'voice-operators', role: 'operator' },
        { value: 'auditors', role: 'auditor' },
      ],
    },
  ],
]

const billing: readonly Made[] = [
  ['/rate-plans', { name: 'Retail Europe', currency: 'EUR' }],
  ['/rates', { rate_plan: 'Retail Europe', prefix: '49', rate_per_minute: '0.0125' }],
  ['/rates', { rate_plan: 'Retail Europe', prefix: '44', rate_per_minute: '0.02' }],
  [
    '/customers',
    {
      name: 'Hotel Astoria, Heringsdorf',
      tenant: TENANT,
      rate_plan: 'Retail Europe',
      numbers: ['+493837800100'],
      balance: '1240.50',
      max_concurrent_calls: 30,
    },
  ],
  [
    '/customers',
    { name: 'Bakery at the harbour', rate_plan: 'Retail Europe', numbers: ['+493837800200'] },
  ],
  [
    '/spend-guards',
    {
      customer: 'Bakery at the harbour',
      prefix: '1900',
      action: 'cap',
      amount: '25.00',
      per: 'day',
      reason: 'premium numbers',
    },
  ],
]

const routing: readonly Made[] = [
  [
    '/routing/carriers',
    {
      name: 'Northern Telecom Wholesale',
      direction: 'both',
      gateways: [deadGateway, { ...deadGateway, port: 5091 }],
      auth: { type: 'ip' },
      max_calls: 100,
      stir: { sign: true, verify: 'mark' },
    },
  ],
  [
    '/routing/carriers',
    {
      name: 'southline',
      direction: 'out',
      gateways: [{ host: '127.0.0.9', port: 5092 }],
      auth: {
        type: 'register',
        username: 'tollgate-4711',
        password: 'a secret of the carrier',
        realm: 'southline.example',
      },
    },
  ],
  [
    '/outbound-routes',
    { name: 'Germany', prefix: '49', carrier: 'Northern Telecom Wholesale', priority: 10 },
  ],
  [
    '/outbound-routes',
    { name: 'everything else', prefix: '', carrier: 'southline', priority: 100 },
  ],
  ['/inbound-routes', { name: 'service hotline', prefix: '+493837800', set_id: 1 }],
  ...[
    ['100', 'Reception'],
    ['101', 'Kitchen'],
    ['205', 'Room 205, with the view of the sea'],
  ].map(([extension, display_name]): Made => [
    '/pbx/extensions',
    {
      extension,
      display_name,
      tenant: TENANT,
      domain: DOMAIN,
      customer: 'Hotel Astoria, Heringsdorf',
      password: 'a secret of the phone',
    },
  ]),
  [
    '/telephony/ai-agents',
    { name: 'Booking assistant', extension: '700', sip_uri: 'sip:bot@127.0.0.9:5093' },
  ],
  [
    '/numbers',
    {
      number: '+493837801000',
      last_number: '+493837801099',
      agent: 'Booking assistant',
      display_name: 'Block of the hotel',
    },
  ],
  ['/routing-webhooks', { url: 'https://hooks.astoria.example/tollgate/route' }],
  [
    '/stir/keys',
    { name: 'of 2026', private_key: rfcKey, x5u: 'https://certificates.example/2026.pem' },
  ],
  ['/stir/authorities', { name: 'STI-PA root', certificate: authorityPem }],
]

const platform: readonly Made[] = [
  ['/alert-channels', { name: 'Network operations', kind: 'email', to: ['noc@astoria.example'] }],
  [
    '/alert-channels',
    { name: 'On call', kind: 'pagerduty', secret: '0123456789abcdef0123456789abcdef' },
  ],
  [
    '/alert-rules',
    { name: 'A carrier is down', on: 'carrier_down', severity: 'critical', channels: ['On call'] },
  ],
  [
    '/alert-rules',
    {
      name: 'Few calls are answered',
      on: 'asr_below',
      threshold: 40,
      channels: ['Network operations', 'On call'],
      quiet_hours: { from: '22:00', to: '06:00', time_zone: 'Europe/Berlin' },
    },
  ],
  [
    '/alert-rules',
    {
      name: 'A balance runs out',
      on: 'balance_below',
      threshold: '2000',
      channels: ['Network operations'],
    },
  ],
  [
    '/mcp/tools/propose_change',
    {
      tool: 'revoke_sbc_api_key',
      arguments: { identifier: 'ci' },
      reason: 'Its token was seen in the log of a build.',
    },
  ],
]

/** Makes all of it with the session of a page. */
export async function makeLivedIn(page: Page): Promise<void> {
  for (const [path, body] of [...access, ...billing, ...routing, ...platform]) {
    const status = await postFrom(page, path, body)
    if (status >= 300) throw new Error(`${path} ${JSON.stringify(body)}: ${status}`)
  }
}
