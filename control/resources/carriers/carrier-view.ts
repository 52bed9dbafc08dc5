/** Carriers as the API shows them: their body, ids, and what the engine needs. */
import type { Selectable } from 'kysely'
import { fromFlag, timeToText } from '../../../schema/columns.ts'
import type { MediaPolicy } from '../../../schema/contracts/media.ts'
import type { CarrierGatewayTable, CarrierTable } from '../../../schema/database.ts'
import type { NumberRules } from '../../../schema/rules/number-rule.ts'
import { mediaViewOf, type MediaView } from '../media-fields.ts'
import { stripHeadersView } from '../stripped-headers.ts'
import type { CarrierBody, GatewayBody } from './carrier-body.ts'
import type { ProbedStatusView } from '../probed-status.ts'

export type GatewayRow = Selectable<CarrierGatewayTable>

export interface CarrierRow extends Selectable<CarrierTable> {
  readonly slug: string | null
  readonly customer: string | null
  readonly rate_plan: string | null
}

interface GatewayView extends GatewayBody {
  readonly id: number
  /** Probe results; null when not probed. */
  readonly status?: ProbedStatusView | null
}

export interface CarrierView extends MediaView {
  readonly media: MediaPolicy
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly customer_id: number | null
  readonly customer: string | null
  readonly payer: 'customer' | 'from_number'
  readonly is_active: boolean
  readonly direction: 'in' | 'out' | 'both'
  readonly gateways: readonly GatewayView[]
  readonly auth: Required<Omit<CarrierBody['auth'], 'password'>>
  readonly caller_id: { readonly mode: 'pass' | 'fixed' | 'pai'; readonly value: string | null }
  readonly number_rules: NumberRules
  readonly strip_headers: string[]
  readonly max_calls: number
  readonly max_cps: number
  readonly rate_plan_id: number | null
  readonly rate_plan: string | null
  readonly inbound_set_id: number | null
  readonly created_at: string
  readonly updated_at: string
}

export function viewOf(row: CarrierRow, gateways: readonly GatewayRow[]): CarrierView {
  return {
    id: row.id,
    name: row.name,
    tenant: row.slug,
    customer_id: row.customer_id,
    customer: row.customer,
    payer: row.payer,
    is_active: fromFlag(row.is_active),
    direction: row.direction,
    gateways: gateways.map((row) => {
      const { carrier_id: _, is_by_tenant: _writer, is_inbound, is_outbound, ...gateway } = row
      return { ...gateway, inbound: fromFlag(is_inbound), outbound: fromFlag(is_outbound) }
    }),
    auth: {
      type: row.auth_type,
      username: row.auth_username,
      realm: row.auth_realm,
      from_user: row.auth_from_user,
      from_domain: row.auth_from_domain,
      expires: row.auth_expires_seconds,
    },
    caller_id: { mode: row.caller_id_mode, value: row.caller_id_value },
    number_rules: JSON.parse(row.number_rules) as NumberRules,
    ...mediaViewOf(row),
    media: row.media,
    strip_headers: stripHeadersView(row.strip_headers),
    max_calls: row.max_calls,
    max_cps: row.max_cps,
    rate_plan_id: row.rate_plan_id,
    rate_plan: row.rate_plan,
    inbound_set_id: row.inbound_set_id,
    created_at: timeToText(row.created_at),
    updated_at: timeToText(row.updated_at),
  }
}
