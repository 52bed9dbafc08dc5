/** Dispatcher sets, carriers and routes. */
import type { HookFallback } from '../contracts/hooks.ts'
import type { Distribution, MediaPolicy, VerifyPolicy } from '../contracts/field-values.ts'
import type { Verification } from '../contracts/stir.ts'
import type { LossProtection } from '../contracts/tariff.ts'
import type { Defaulted, Flag, Id, MediaRulesColumns } from '../columns.ts'

export interface RoutingTables {
  dispatcher_set: DispatcherSetTable
  dispatcher_node: DispatcherNodeTable
  carrier: CarrierTable
  carrier_gateway: CarrierGatewayTable
  outbound_route: OutboundRouteTable
  inbound_route: InboundRouteTable
  routing_webhook: RoutingWebhookTable
  stir_key: StirKeyTable
  stir_authority: StirAuthorityTable
}

interface DispatcherSetTable extends MediaRulesColumns {
  id: Id
  set_id: number
  endpoint_name: string
  tenant_id: number | null
  /** 8 failover, 4 round robin, 9 weight, 6 random, 0 Call-ID hash. */
  algorithm: number
  /** Null for the default of the process (`PROBE_…` settings). */
  probe_interval_ms: number | null
  probe_timeout_ms: number | null
  probe_fail_threshold: number | null
  probe_recover_threshold: number | null
  /** JSON array of status numbers and ranges, such as `["200-299", 404]`. */
  probe_ok_codes: string | null
  voicemail_uri: string | null
  spy_uri: string | null
  /** A tenant has written `voicemail_uri` or `spy_uri`. */
  is_by_tenant: Defaulted<Flag>
  /** JSON of the rules about callers, or null. */
  caller_identity: string | null
  created_at: number
  updated_at: number
}

export interface DispatcherNodeTable {
  id: Id
  dispatcher_set_id: number
  host: string
  internal_port: Defaulted<number>
  external_port: Defaulted<number>
  weight: Defaulted<number>
  priority: Defaulted<number>
  description: string | null
  transport: Defaulted<'udp' | 'tcp' | 'tls'>
  is_enabled: Defaulted<Flag>
  /** 0: unlimited. */
  max_calls: Defaulted<number>
  /** The state that an operator set. `inactive` survives restarts; probe state does not. */
  operator_state: Defaulted<'active' | 'inactive'>
  /** A tenant has written `host` and `internal_port`. */
  is_by_tenant: Defaulted<Flag>
}

interface CarrierTable extends Omit<MediaRulesColumns, 'media'> {
  id: Id
  name: string
  tenant_id: number | null
  customer_id: number | null
  /** The payer of its calls: its customer, or the customer that owns the number in From. */
  payer: Defaulted<'customer' | 'from_number'>
  is_active: Defaulted<Flag>
  direction: Defaulted<'in' | 'out' | 'both'>
  auth_type: Defaulted<'ip' | 'digest' | 'register'>
  auth_username: string | null
  /** Encrypted (`schema/secrets`). */
  auth_password: string | null
  auth_realm: string | null
  auth_from_user: string | null
  auth_from_domain: string | null
  auth_expires_seconds: number | null
  caller_id_mode: Defaulted<'pass' | 'fixed' | 'pai' | 'policy'>
  caller_id_value: string | null
  /** JSON of the rules about callers, or null. */
  caller_identity: string | null
  /** JSON `{in: [{match, replace}], out: […]}`. */
  number_rules: Defaulted<string>
  media: Defaulted<MediaPolicy>
  /** JSON array of header names that its calls do not carry, or null. */
  strip_headers: string | null
  /** JSON array of header and URI rules. */
  header_rules: Defaulted<string>
  stir_sign: Defaulted<Flag>
  stir_verify: Defaulted<VerifyPolicy>
  /** JSON of the rules by which calls hunt, or null: the usual ones. */
  hunting: string | null
  /** 0: unlimited. */
  max_calls: Defaulted<number>
  max_cps: Defaulted<number>
  inbound_set_id: number | null
  /** The carrier's prices, compared by least-cost routes; null when unknown. */
  rate_plan_id: number | null
  distribution: Defaulted<Distribution>
  created_at: number
  updated_at: number
}

interface CarrierGatewayTable {
  id: Id
  carrier_id: number
  host: string
  port: Defaulted<number>
  transport: Defaulted<'udp' | 'tcp' | 'tls'>
  /** Prefix length of the source network that is recognized as this gateway. */
  netmask: Defaulted<number>
  is_inbound: Defaulted<Flag>
  is_outbound: Defaulted<Flag>
  priority: Defaulted<number>
  weight: Defaulted<number>
  /** A tenant has written `host` and `port`. */
  is_by_tenant: Defaulted<Flag>
}

interface OutboundRouteTable {
  id: Id
  name: string
  tenant_id: number | null
  customer_id: number | null
  carrier_id: number | null
  prefix: string
  priority: Defaulted<number>
  weight: Defaulted<number>
  mode: Defaulted<'static' | 'lcr' | 'block'>
  strip: Defaulted<number>
  prepend: Defaulted<string>
  is_active: Defaulted<Flag>
  is_emergency: Defaulted<Flag>
  loss_protection: Defaulted<LossProtection | null>
  /** An amount per minute, or a percentage. */
  min_margin: Defaulted<string | null>
  /** A tenant has written the two before. */
  is_loss_by_tenant: Defaulted<Flag>
  distribution: Defaulted<Distribution>
  /** JSON of the floors of its carrier's quality, or null. */
  quality: string | null
  created_at: number
}

interface InboundRouteTable {
  id: Id
  name: string
  tenant_id: number | null
  carrier_id: number | null
  /** Called number prefix, or null: any. */
  prefix: string | null
  /** Domain of the Request-URI, or null: any. */
  domain: string | null
  target_type: 'set' | 'extension' | 'agent'
  /** The proof that Identity headers must have given, or null: any. */
  verification: Verification | null
  /** Set id, `<extension>@<domain>` or agent id, by `target_type`. */
  target: string
  priority: Defaulted<number>
  is_active: Defaulted<Flag>
  created_at: number
}

interface RoutingWebhookTable {
  id: Id
  tenant_id: number | null
  url: string
  description: string | null
  /** Encrypted (`schema/secrets`), as the next. */
  secret: string
  previous_secret: string | null
  previous_secret_expires_at: number | null
  /** It is asked about calls from this carrier. */
  carrier_id: number | null
  /** It is asked about calls from nodes of this dispatcher set, by its number. */
  set_id: number | null
  timeout_ms: number
  fallback: HookFallback
  cache_seconds: number
  /** JSON array of parts of a call. */
  cache_key: string
  is_enabled: Flag
  created_at: number
  updated_at: number
}

interface StirKeyTable {
  id: Id
  name: string
  tenant_id: number | null
  /** PEM, encrypted (`schema/secrets`). */
  private_key: string
  /** The chain in PEM, or null: it is where `x5u` says. */
  certificate: string | null
  x5u: string | null
  valid_from: number | null
  valid_until: number | null
  is_active: Flag
  created_at: number
  updated_at: number
}

interface StirAuthorityTable {
  id: Id
  name: string
  tenant_id: null
  /** PEM. */
  certificate: string
  is_active: Flag
  created_at: number
  updated_at: number
}
