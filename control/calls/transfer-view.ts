/** The transfer of a call as the API shows it. */
import type { ActiveCall } from '../../schema/contracts/calls.ts'

/** The part of a call in a transfer; null when it has none. */
export function transferView({ transfer }: Pick<ActiveCall, 'transfer'>) {
  if (transfer === undefined) return null
  const { state, callUuid, destination, sipCode } = transfer
  return { state, call_uuid: callUuid, destination, sip_code: sipCode }
}
