/** The transfer of a call as the API shows it. */
import type { ActiveCall } from '../../../schema/contracts/calls.ts'

/** How a call takes part in a transfer; null: it does not. */
export function transferView({ transfer }: Pick<ActiveCall, 'transfer'>) {
  if (transfer === undefined) return null
  const { state, callUuid, destination, sipCode } = transfer
  return { state, call_uuid: callUuid, destination, sip_code: sipCode }
}
