/** Which spend guards stopped a call: those that covered it at that time. Its record says only that one did. */
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import type { Store } from '../../../schema/open.ts'
import { coversNumber } from '../../../schema/rules/called-prefix.ts'
import type { Principal } from '../../auth/principal.ts'
import { type GuardRow, GuardStore } from './guard-store.ts'

interface StoppedCall {
  readonly caller_id_number: string
  readonly destination_number: string
  readonly start_stamp: number
  readonly answer_stamp: number | null
  readonly end_stamp: number
  readonly customer_id: number | null
  readonly tenant_id: number | null
}

interface World {
  readonly store: Store
  readonly principal: Principal
  /** Absent: an OCS elsewhere charges. */
  readonly ocs?: Pick<OcsPort, 'exitCodes'> | undefined
}

/** Their uuids, the longest prefix first; without those that the caller may not see. */
export async function guardsOfCall(
  call: StoppedCall,
  { store, principal, ocs }: World,
): Promise<string[]> {
  const at = call.answer_stamp === null ? call.start_stamp : call.end_stamp
  const rows = await new GuardStore(store).inForce(principal.tenantId, at)
  const own = rows
    .filter((row) => isOf(row, call))
    .toSorted((a, b) => b.prefix.length - a.prefix.length)
  const { destination_number: number } = call
  const covering = own.filter(({ prefix }) => coversNumber(prefix, number, ocs?.exitCodes))
  // One covered what gateways would have got in place of the number, which the record does not say.
  return (covering.length > 0 ? covering : own).map(({ guard_uuid }) => guard_uuid)
}

function isOf(row: GuardRow, call: StoppedCall): boolean {
  if (row.customer_id !== null) return row.customer_id === call.customer_id
  if (row.tenant_id !== null) return row.tenant_id === call.tenant_id
  // A refused call without a payer has no tenant in its record.
  const isOfTenant = call.tenant_id === null || row.extension_tenant === call.tenant_id
  return isOfTenant && row.number === call.caller_id_number.replace(/^\+/, '')
}
