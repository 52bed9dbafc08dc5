/** The extensions of a call's two parties, and what they wish for its recording. */
import type { CallRecording } from '../../../schema/contracts/calls.ts'
import type { LiveCall } from '../../call/call-machine/live.ts'
import { isOfSupervisor } from '../../call/monitoring/supervisor-call.ts'
import { recordingOf } from './who-is-recorded.ts'

/** As the registrar knows it. */
export type ExtensionAt = (
  domain: string,
  extension: string,
) => { readonly callRecording?: CallRecording } | undefined

/**
 * From the moment on at which its destination is dialled. What a supervisor hears is of others, who have not been asked,
 * and may wish not to be recorded. What another node records is not recorded twice.
 */
export function recordingWish(
  call: Pick<LiveCall, 'start' | 'origin' | 'destination' | 'dialing'>,
  extensionAt: ExtensionAt,
): CallRecording {
  const { start, origin, destination, dialing } = call
  if (isOfSupervisor(start) || start.isRecordedElsewhere === true) return 'never'
  const called = destination ?? dialing?.current
  const caller =
    origin?.kind === 'extension' ? extensionAt(origin.domain, origin.extension) : undefined
  const callee = called?.kind === 'extension' ? at(called.uri, extensionAt) : undefined
  return recordingOf([caller?.callRecording, callee?.callRecording])
}

/** `sip:<extension>@<domain>`. */
function at(uri: string, extensionAt: ExtensionAt) {
  const end = uri.lastIndexOf('@')
  return extensionAt(uri.slice(end + 1), uri.slice('sip:'.length, end))
}
