/** The extension whose phones ring first: in click-to-call, and for a supervisor. */
import { partyOfNumber } from '../sip/caller-id.ts'
import { escapeUser } from '../../sip-server/message/index.ts'
import type { ExtensionRecord } from '../../registrar/extension-directory.ts'
import type { Registrar } from '../../registrar/registrar.ts'
import type { PhoneCandidate } from '../dialing/outgoing-invite.ts'
import { phoneAt } from '../inbound/extension-route.ts'
import { originOf } from '../inbound/identify.ts'
import type { IncomingInvite } from '../inbound/incoming-invite.ts'

export function phonesOf(
  { domain, extension, tenantId }: ExtensionRecord,
  { registrar }: { readonly registrar: Pick<Registrar, 'contactsOf'> },
): readonly PhoneCandidate[] {
  return registrar
    .contactsOf(domain, extension)
    .map((contact) => ({ ...phoneAt(contact), extension, domain, tenantId }))
}

export interface SourceCall {
  readonly callUuid: string
  readonly destination: string
  /** What the called side is shown; undefined: the extension and its name. */
  readonly callerNumber: string | undefined
  readonly callerName: string | undefined
}

/** As an INVITE of the extension would be read. */
export function inviteOfSource(
  { callUuid, destination, callerNumber, callerName }: SourceCall,
  source: ExtensionRecord,
): IncomingInvite {
  const { domain, extension, displayName } = source
  const number = callerNumber ?? extension
  const name = callerName ?? (callerNumber === undefined ? displayName : '')
  return {
    origin: originOf(source),
    callUuid,
    callId: callUuid,
    domain,
    headers: {},
    body: undefined,
    from: partyOfNumber(number, domain, name),
    callerNumber: number,
    callerName: name || null,
    calledNumber: destination,
    calledUser: escapeUser(destination),
    hopsLeft: 70,
  }
}
