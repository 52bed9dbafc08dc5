/**
 * The rule for each field that a tenant's key may write: "Who owns what" of GUIDE.md, as a table.
 */

import { authorityPem, rfcKey } from './stir-fixtures.ts'

export type Body = Readonly<Record<string, unknown>>

/** It refers to nothing that another tenant could own. */
export const plain = 'plain'
/** Only the platform's credentials may write it: 403. */
export const platform = 'platform'
/**
 * Bodies that name something of another tenant, of the platform, or not assigned to the tenant:
 * each is refused.
 */
type Rule = typeof plain | typeof platform | readonly Body[]

/** All that others own has this word in it. */
export const CANARY = 'canary'
export const CALL = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff'

const foreign = (field: string, ...values: readonly unknown[]): readonly Body[] =>
  values.map((value) => ({ [field]: value }))

/** A spend guard is on one of them. */
const alone = (body: Body): Body => ({ customer: undefined, ...body })

const named = (field: string, of: string): Record<string, Rule> => ({
  [field]: foreign(field, `${CANARY} ${of}`, `${CANARY} ${of} of the platform`),
  [`${field}_id`]: foreign(`${field}_id`, 1, 2),
})

const plains = (...fields: readonly string[]): Record<string, Rule> =>
  Object.fromEntries(fields.map((field) => [field, plain]))

const tenant = { tenant: foreign('tenant', CANARY, 1, 'unheard-of') }
/** Where the canary's and the platform's machines are, and where programs of this one are. */
const takenHosts = [
  '10.1.0.1',
  '10.1.0.9',
  '10.2.0.1',
  '10.2.9.7',
  '127.0.0.5',
  'sip.canary.example',
]
const takenNodes = takenHosts.map((host) => ({ nodes: [{ host }] }))
const taken = takenHosts.map((host) => ({ host }))
const gatewayUris = ['sip:1900@10.1.0.9', 'sip:1900@10.2.9.7', 'sip:1900@sip.canary.example']

const node: Record<string, Rule> = {
  host: taken,
  ...plains('internal_port', 'external_port', 'weight', 'priority', 'description', 'transport'),
  ...plains('is_enabled', 'max_calls'),
}

const within = (parent: string, rules: Record<string, Rule>): Record<string, Rule> =>
  Object.fromEntries(Object.entries(rules).map(([field, rule]) => [`${parent}.${field}`, rule]))

/** Numbers of the canary, of the platform, within the tenant's block but the canary's, of nobody. */
const foreignNumbers = ['15559000001', '15559000002', '15557899999', '15550001234', '911']

const identities = (member: string, ...values: readonly unknown[]): readonly Body[] =>
  values.map((value) => ({ caller_identity: { [member]: value } }))

/** Rules about the number that calls show: a tenant shows its own ones only. */
const callerRules: Record<string, Rule> = {
  ...within('caller_identity', plains('present', 'otherwise', 'forwarded')),
  'caller_identity.allowed': identities('allowed', 'list', 'any'),
  'caller_identity.numbers': identities('numbers', ['15559'], ['15557000001']),
  'caller_identity.emergency_number': identities('emergency_number', ...foreignNumbers),
}

/** A party says of itself what media it takes, and which headers it is not to see. */
const mediaFields = ['media', 'media_profile', 'codecs', 'dtmf'] as const
const voice = plains(...mediaFields, 'strip_headers', 'preset')

/** Of its own carriers alone: engine/routing/loss-guard.ts. */
const losses = plains('loss_protection', 'min_margin')

const carriersOfOthers = [`${CANARY} carrier`, `${CANARY} carrier of the platform`]

const calls: Record<string, Rule> = { call_uuid: foreign('call_uuid', CALL) }

const originate: Record<string, Rule> = {
  source_extension: foreign('source_extension', '199'),
  caller_id_number: foreign('caller_id_number', '15559000001', '15559000002', '911'),
  domain: foreign('domain', 'canary.example'),
  ...plains('destination_number', 'caller_id_name', 'auto_answer', 'timeout_seconds'),
}

interface Operations {
  /** The fields of a body that is accepted; the tried fields take the place of its own. */
  readonly body: Body
  readonly rules: Readonly<Record<string, Rule>>
  /** The row that PATCH changes, by its collection. */
  readonly item?: string
}

/** Calls of others are priced by no plan of the tenant: neither parties nor plans are named. */
const rerating: Operations = {
  body: {
    kind: 'sold',
    rate_plan: 'own plan',
    from: '2020-01-01T00:00:00Z',
    to: '2020-02-01T00:00:00Z',
  },
  rules: {
    rate_plan: foreign('rate_plan', `${CANARY} plan`, `${CANARY} plan of the platform`),
    rate_plan_id: [1, 2].map((id) => ({ rate_plan: undefined, rate_plan_id: id })),
    customer: foreign('customer', `${CANARY} customer`, `${CANARY} customer of the platform`),
    customer_id: foreign('customer_id', 1, 2),
    carrier: carriersOfOthers.map((carrier) => ({ kind: 'bought', carrier })),
    carrier_id: [1, 2].map((id) => ({ kind: 'bought', carrier_id: id })),
    ...plains('kind', 'from', 'to', 'prefix', 'prices'),
  },
}

/** The rules by the path of the collection; a PATCH of an element has the same rules. */
export const operations: Readonly<Record<string, Operations>> = {
  '/users': {
    body: { username: 'mine', password: 'correct horse', role: 'auditor' },
    rules: {
      tenant_slug: foreign('tenant_slug', CANARY, null),
      ...plains('username', 'password', 'role', 'is_active'),
    },
  },
  '/application-keys': {
    body: { name: 'mine', scopes: ['cdrs:read'] },
    rules: {
      tenant_slug: foreign('tenant_slug', CANARY),
      tenant_scope: foreign('tenant_scope', 'global'),
      domain: foreign('domain', 'canary.example'),
      ...plains('name', 'description', 'scopes', 'rate_limit_rpm', 'expires_at', 'is_active'),
      ...plains('kind', 'allowed_ips'),
    },
  },
  '/application-keys/{uuid}/rotate': { body: {}, rules: plains('grace_seconds') },
  '/tenants': {
    body: { slug: 'mine' },
    rules: Object.fromEntries(
      ['slug', 'name', 'is_active', 'domains', 'numbers', 'time_zone', ...mediaFields].map(
        (field) => [field, platform],
      ),
    ),
  },
  '/spend-guards': {
    body: { customer: 'own customer', prefix: '1900', action: 'block', reason: 'a test' },
    rules: {
      customer: foreign('customer', 1, 2, `${CANARY} customer`),
      extension: foreign('extension', 1, '199@canary.example').map(alone),
      tenant: foreign('tenant', CANARY, 1, 'unheard-of').map(alone),
      ...plains('prefix', 'action', 'amount', 'per', 'end_live_calls'),
      ...plains('reason', 'dry_run', 'duration'),
    },
  },
  '/guard/bans': {
    body: { address: '192.0.2.1' },
    rules: { address: platform, duration_seconds: platform },
  },
  '/dispatcher': {
    body: { endpoint_name: 'mine', algorithm: 8, nodes: [{ host: '10.3.0.1' }] },
    rules: {
      ...tenant,
      ...within('nodes', { ...node, host: takenNodes }),
      voicemail_uri: foreign('voicemail_uri', ...gatewayUris),
      spy_uri: foreign('spy_uri', 'sip:{call_uuid}@10.1.0.9', 'sip:{call_uuid}@10.2.9.7'),
      ...plains('endpoint_name', 'algorithm', ...mediaFields),
      ...callerRules,
      set_id: foreign('set_id', 1, 2),
      ...within(
        'probe',
        plains('interval_ms', 'timeout_ms', 'fail_threshold', 'recover_threshold', 'ok_codes'),
      ),
    },
  },
  '/dispatcher/{id}/nodes': { body: { host: '10.3.0.2' }, rules: node },
  '/dispatcher/{id}/nodes/{nodeId}/state': {
    body: {},
    rules: plains('state', 'expected_state', 'reason', 'duration'),
  },
  '/application-keys/{uuid}/suspend': {
    body: {},
    rules: plains('reason', 'dry_run', 'duration', 'confirm_self'),
  },
  '/application-keys/{uuid}/resume': { body: {}, rules: plains('reason', 'dry_run') },
  '/changes/{change_id}/undo': { body: {}, rules: plains('reason', 'dry_run') },
  '/routing/carriers': {
    body: { name: 'mine', gateways: [{ host: '10.4.0.1' }] },
    rules: {
      ...tenant,
      ...named('customer', 'customer'),
      ...named('rate_plan', 'plan'),
      ...named('inbound_set', 'set'),
      'gateways.host': takenHosts.map((host) => ({ gateways: [{ host }] })),
      'gateways.netmask': [16, 8].map((netmask) => ({ gateways: [{ host: '10.2.0.0', netmask }] })),
      'gateways.port': foreign('gateways', [{ host: '10.1.0.9', port: 5090 }]),
      'gateways.inbound': foreign('gateways', [{ host: '10.2.9.7', inbound: false }]),
      'gateways.outbound': foreign('gateways', [{ host: '10.2.9.7', outbound: false }]),
      direction: foreign('gateways', [{ host: '10.2.9.7' }]).map((body) => ({
        ...body,
        direction: 'out',
      })),
      is_active: foreign('gateways', [{ host: '10.2.9.7' }]).map((body) => ({
        ...body,
        is_active: false,
      })),
      ...within('gateways', plains('transport', 'priority', 'weight')),
      // Only customers of its tenant pay: test/engine/call/inbound/admission.test.ts.
      ...plains('payer'),
      ...within('auth', plains('type', 'username', 'password', 'realm', 'from_user')),
      ...within('auth', plains('from_domain', 'expires')),
      // Shown to its own carrier, which judges it.
      ...within('caller_id', plains('mode', 'value')),
      ...within('number_rules.in', plains('match', 'replace')),
      ...within('number_rules.out', plains('match', 'replace')),
      ...callerRules,
      // They write what its own carrier reads, never another number than the one that is decided:
      // test/control/resources/header-rules.test.ts.
      ...within('header_rules', plains('direction', 'do', 'header', 'part', 'parameter', 'value')),
      ...within('header_rules', plains('source', 'pattern', 'replacement')),
      // Keys of its tenant sign: test/engine/stir/signing.test.ts.
      ...within('stir', plains('sign', 'verify')),
      // A tenant's redirect server reaches its own carriers: test/engine/routing/redirects.test.ts.
      ...within('hunting', plains('next_on', 'stop_on', 'max_attempts', 'max_seconds')),
      ...within('hunting', plains('redirects')),
      ...within('hunting.answers', plains('match', 'status', 'reason')),
      ...plains('name', 'max_calls', 'max_cps', 'distribution'),
      ...voice,
    },
  },
  '/outbound-routes': {
    body: { name: 'mine', carrier: 'own carrier', prefix: '49' },
    rules: {
      ...tenant,
      ...named('customer', 'customer'),
      carrier: foreign('carrier', `${CANARY} carrier`, `${CANARY} carrier of the platform`),
      carrier_id: [1, 2].map((id) => ({ carrier: undefined, carrier_id: id })),
      emergency: platform,
      // A route takes calls of its tenant only: engine/routing/outbound-routes.ts.
      ...plains('name', 'prefix', 'priority', 'weight', 'mode', 'strip', 'prepend', 'is_active'),
      ...losses,
      // They change the order of its own calls alone.
      ...plains('distribution'),
      ...within('quality', plains('min_asr', 'min_acd', 'max_pdd_ms', 'window', 'min_calls')),
    },
  },
  '/inbound-routes': {
    body: { name: 'mine', set: 'own set' },
    rules: {
      ...tenant,
      ...named('carrier', 'carrier'),
      domain: foreign('domain', 'canary.example', 'unheard-of.example'),
      set: foreign('set', `${CANARY} set`, `${CANARY} set of the platform`, 1),
      set_id: [1, 2].map((id) => ({ set: undefined, set_id: id })),
      extension: [{ set: undefined, extension: '199' }],
      extension_domain: [
        { set: undefined, extension: '199', extension_domain: 'canary.example' },
        { set: undefined, extension: '100', extension_domain: 'canary.example' },
      ],
      agent: ['', ' of the platform'].map((of) => ({
        set: undefined,
        agent: `${CANARY} agent${of}`,
      })),
      // The calls that it takes are judged when a call is routed:
      // test/engine/routing/inbound-routes.test.ts.
      ...plains('name', 'prefix', 'priority', 'is_active', 'verification'),
    },
  },
  '/numbers': {
    body: { number: '+15557000010' },
    rules: {
      ...tenant,
      ...named('customer', 'customer'),
      number: foreign('number', ...foreignNumbers, 'user'),
      last_number: [
        ['15557000010', '15559000001'],
        ['15557000010', '15557899999'],
        ['15557700000', '15557800001'],
      ].map(([number, last_number]) => ({ number, last_number })),
      set: foreign('set', `${CANARY} set`, `${CANARY} set of the platform`, 1),
      set_id: foreign('set_id', 1, 2),
      extension: foreign('extension', '199'),
      extension_domain: ['199', '101'].map((extension) => ({
        extension,
        extension_domain: 'canary.example',
      })),
      agent: foreign('agent', `${CANARY} agent`, `${CANARY} agent of the platform`),
      verified_since: platform,
      attestation: platform,
      ...plains('display_name', 'emergency_address', 'monthly_fee', 'is_active'),
    },
  },
  '/webhooks': {
    body: { url: 'https://example.com/' },
    // The links act for the user who switches them on.
    rules: { ...tenant, ...plains('url', 'events', 'description', 'is_active', 'approval_links') },
  },
  '/routing-webhooks': {
    body: { url: 'https://example.com/', set: 'own set' },
    rules: {
      ...tenant,
      ...Object.fromEntries(
        Object.entries(named('carrier', 'carrier')).map(([field, bodies]) => [
          field,
          typeof bodies === 'string' ? bodies : bodies.map((body) => ({ set: undefined, ...body })),
        ]),
      ),
      set: foreign('set', `${CANARY} set`, `${CANARY} set of the platform`, 1),
      set_id: [1, 2].map((id) => ({ set: undefined, set_id: id })),
      // Its decisions are judged when they are applied to a call.
      ...plains('url', 'description', 'timeout_ms', 'fallback', 'cache_seconds', 'cache_key'),
      ...plains('enabled', 'secret'),
    },
  },
  '/identity-providers': {
    body: {
      name: 'mine',
      issuer: 'https://login.own.example',
      client_id: 'mine',
      role_mappings: [{ value: 'mine', role: 'auditor' }],
    },
    rules: {
      ...tenant,
      ...plains('name', 'issuer', 'client_id', 'client_secret', 'scopes', 'is_enabled'),
      ...plains('role_claim', 'username_claim', 'role_mappings', 'role_mappings.value'),
      'role_mappings.role': plain,
      'role_mappings.tenant': [CANARY, 'unheard-of'].map((slug) => ({
        role_mappings: [{ value: 'mine', role: 'auditor', tenant: slug }],
      })),
    },
  },
  '/stir/keys': {
    body: { name: 'mine', private_key: rfcKey, x5u: 'https://example.com/shaken.pem' },
    rules: {
      ...tenant,
      // It signs calls of its tenant alone: test/engine/stir/signing.test.ts.
      ...plains('name', 'private_key', 'certificate', 'x5u', 'valid_from', 'valid_until'),
      ...plains('is_active'),
    },
  },
  '/stir/authorities': {
    body: { name: 'mine', certificate: authorityPem },
    rules: {
      // A tenant's key sees none: it is told that there is none, or that it may not.
      name: foreign('name', 'theirs'),
      certificate: foreign('certificate', authorityPem),
      is_active: foreign('is_active', false),
    },
  },
  '/alert-channels': {
    body: { name: 'mine', kind: 'email', to: ['a@example.com'] },
    rules: {
      ...tenant,
      ...plains('name', 'kind', 'to', 'from', 'is_enabled'),
      ...plains('smtp_host', 'smtp_port', 'smtp_tls', 'smtp_user', 'url', 'secret'),
    },
  },
  '/alert-rules': {
    body: { name: 'mine', on: 'asr_below', threshold: 50, channels: ['own channel'] },
    rules: {
      ...tenant,
      ...named('customer', 'customer'),
      ...named('carrier', 'carrier'),
      channels: foreign(
        'channels',
        [`${CANARY} channel`],
        [`${CANARY} channel of the platform`],
        [1],
      ),
      ...plains('name', 'on', 'severity', 'threshold', 'window_seconds', 'least_calls'),
      ...plains('for_seconds', 'node', 'least_severity', 'group_seconds'),
      ...plains('quiet_hours.from', 'quiet_hours.to', 'quiet_hours.time_zone'),
      ...plains('quiet_hours.holds_critical'),
      ...plains('is_enabled'),
    },
  },
  '/routing-webhooks/{id}/rotate': { body: {}, rules: plains('overlap_seconds') },
  '/routing-webhooks/{id}/test': { body: { from: '1', to: '2' }, rules: plains('from', 'to') },
  '/proposals/{uuid}/approve': { body: { revision: 1 }, rules: plains('revision', 'note') },
  '/proposals/{uuid}/refuse': { body: {}, rules: plains('note') },
  '/webhooks/{id}/rotate': { body: {}, rules: plains('overlap_seconds') },
  '/pbx/extensions': {
    body: { extension: '150', password: 'a password', display_name: 'mine' },
    rules: {
      ...tenant,
      ...named('customer', 'customer'),
      domain: foreign('domain', 'canary.example', 'unheard-of.example'),
      // Dialled within its domain only.
      ...plains('extension', 'password', 'display_name', 'voicemail_enabled', 'call_recording'),
      ...plains('email', ...mediaFields),
      ...callerRules,
      caller_number: foreign('caller_number', ...foreignNumbers),
    },
  },
  '/telephony/ai-agents': {
    body: { name: 'mine', extension: '750', sip_uri: 'sip:bot@10.3.0.9' },
    rules: {
      ...tenant,
      sip_uri: foreign('sip_uri', ...gatewayUris),
      // It takes callers of the platform to a listed number only:
      // test/engine/routing/agents.test.ts.
      ...plains('name', 'extension', 'description', 'max_calls', 'is_active'),
      ...voice,
    },
  },
  '/customers': {
    body: { name: 'mine' },
    rules: {
      ...tenant,
      ...named('rate_plan', 'plan'),
      numbers: foreign('numbers', ['15559000001'], ['15550001234'], ['1800'], ['user']),
      ...plains('name', 'email', 'password', 'is_active', 'credit_limit', 'max_concurrent_calls'),
      ...plains('max_cps', 'max_daily_spend', 'max_call_seconds', 'low_balance_threshold'),
      ...plains('currency', 'balance', 'time_zone'),
      ...losses,
      ...callerRules,
      default_number: foreign('default_number', ...foreignNumbers),
    },
  },
  '/billing/alerts/{id}/assign': {
    body: { customer: 'own customer' },
    rules: { customer: platform, amount: platform },
  },
  // The state of the finding is the tenant's own: test/control/observe/causes/kept-findings.test.ts.
  '/findings/{id}/acknowledge': { body: {}, rules: plains('note') },
  '/findings/{id}/snooze': {
    body: { reason: 'to try it', duration: 60 },
    rules: plains('reason', 'until', 'duration'),
  },
  '/customers/{id}/wallet/adjust': { body: {}, rules: plains('amount', 'reason', 'kind') },
  '/rate-plans': {
    body: { name: 'mine' },
    rules: {
      ...tenant,
      ...plains('name', 'currency', 'decimals', 'rounding', 'priced_by', 'deck_mapping'),
      ...losses,
      ...plains('time_zone', 'holidays', 'price_change'),
      ...plains('periods.name', 'periods.days', 'periods.from', 'periods.to'),
    },
  },
  '/rates/reratings': rerating,
  '/rates/reratings/preview': rerating,
  '/rates': {
    body: { rate_plan: 'own plan', prefix: '49', rate_per_minute: 1 },
    rules: {
      ...tenant,
      rate_plan: foreign('rate_plan', `${CANARY} plan`, `${CANARY} plan of the platform`),
      rate_plan_id: [1, 2].map((id) => ({ rate_plan: undefined, rate_plan_id: id })),
      ...plains('prefix', 'description', 'rate_per_minute', 'connect_fee', 'first_increment'),
      ...plains(
        'period',
        'first_rate_per_minute',
        'increment',
        'blocked',
        'effective_from',
        'effective_to',
      ),
    },
  },
  '/telephony/transfer': {
    body: { destination: '1555' },
    rules: { ...calls, ...plains('destination', 'leg', 'mode') },
  },
  '/pbx/calls/{uuid}/transfer': { body: {}, rules: plains('destination', 'leg', 'mode') },
  '/telephony/hangup': { body: {}, rules: { ...calls, ...plains('cause') } },
  '/telephony/recording': { body: { action: 'start' }, rules: { ...calls, ...plains('action') } },
  '/telephony/spy': {
    body: { supervisor_extension: '101' },
    rules: {
      ...calls,
      supervisor_extension: [{ call_uuid: CALL, supervisor_extension: '199' }],
      domain: [{ call_uuid: CALL, domain: 'canary.example' }],
      ...plains('mode', 'side'),
    },
  },
  '/telephony/simulate': {
    body: { from: '101', to: '1555' },
    rules: {
      source: foreign('source', ...carriersOfOthers, '199@canary.example', '100@canary.example'),
      ...plains('from', 'to', 'call_id', 'at'),
    },
  },
  '/routing/carriers/{id}/test-call': {
    body: { source_extension: '101', destination_number: '1555' },
    rules: {
      source_extension: foreign('source_extension', '199'),
      domain: foreign('domain', 'canary.example'),
      ...plains('destination_number', 'auto_answer'),
    },
  },
  '/auth/password': {
    body: {},
    rules: plains('old_password', 'new_password'),
  },
  // A key has none.
  '/saved-views/{screen}': { body: {}, rules: plains('query') },
  // A key has no sign-in.
  '/auth/second-factor': { body: {}, rules: plains('password') },
  '/auth/second-factor/confirmation': { body: {}, rules: plains('code') },
  '/auth/second-factor/recovery-codes': { body: {}, rules: plains('password', 'code') },
  '/auth/second-factor/removal': { body: {}, rules: plains('password', 'code') },
  '/sign-in-policy': { body: {}, rules: plains('is_second_factor_required') },
  '/telephony/test-call': {
    body: { from: '101', to: '1555' },
    rules: {
      from: foreign('from', '199', '15559000001', '15559000002'),
      domain: foreign('domain', 'canary.example'),
      ...plains('to', 'max_seconds'),
    },
  },
  '/pbx/calls/originate': {
    body: { source_extension: '101', destination_number: '1555' },
    rules: originate,
  },
  '/telephony/originate': {
    body: { source_extension: '101', destination_number: '1555' },
    rules: originate,
  },
}

/** `/api/v1/customers/{id}` → `/customers`. */
export const collectionOf = (path: string): string =>
  path.replace('/api/v1', '').replace(/\/\{\w+\}$/, '')
