/** Provisional responses that must arrive, and the PRACKs that say so: RFC 3262 §3. */
import { Reliable1xx } from '../../dialog/reliable-1xx.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseOptionTags, parseRAck } from '../../message/simple-fields.ts'
import type { TransactionContext } from '../../transaction/context.ts'
import type { AppHeaders } from '../app-headers.ts'
import type { Identifiers } from '../identifiers.ts'
import type { InboundRequest } from './inbound-request.ts'

const requires100rel = (request: SipMessage): boolean =>
  request.has('Require') && parseOptionTags(request.all('Require')).includes('100rel')

/** Whether the application or the caller wants this response to be reliable. */
export const isToBeReliable = (
  { request }: InboundRequest,
  status: number,
  headers: AppHeaders,
): boolean =>
  status > 100 &&
  status < 200 &&
  request.method === 'INVITE' &&
  (headers.requires100rel || requires100rel(request))

/** A caller that does not know the extension would never send a PRACK. */
export const takes100rel = ({ request }: InboundRequest): boolean =>
  requires100rel(request) || parseOptionTags(request.all('Supported')).includes('100rel')

/** The response's own header lines and number; undefined: too many wait for their PRACK. */
export function prepareReliable(
  { dialog, request, transaction }: InboundRequest,
  { requires100rel: isRequired }: AppHeaders,
  context: TransactionContext,
  ids: Identifiers,
  onUnacknowledged: (now: number) => void,
): { readonly reliable: Reliable1xx; readonly rseq: number; readonly lines: string } | undefined {
  const cseq = request.cseq?.number ?? 0
  const begin = (): Reliable1xx =>
    // §3: chosen at random from 1 to 2^31-1, with room above it.
    new Reliable1xx(cseq, (ids.number() >>> 1) | 1, transaction.flow, context, onUnacknowledged)
  const reliable = dialog?.reliable1xxOf(cseq, begin)
  const rseq = reliable?.nextRSeq
  if (reliable === undefined || rseq === undefined) return undefined
  return { reliable, rseq, lines: `${isRequired ? '' : 'Require: 100rel\r\n'}RSeq: ${rseq}\r\n` }
}

/** A CANCEL as the caller of `request` would have sent it. */
export const cancelText = (request: SipMessage, reason: string): string =>
  `CANCEL ${request.uri} SIP/2.0\r\nVia: ${request.get('Via') ?? ''}\r\n` +
  `Max-Forwards: 70\r\nFrom: ${request.get('From') ?? ''}\r\nTo: ${request.get('To') ?? ''}\r\n` +
  `Call-ID: ${request.callId}\r\nCSeq: ${request.cseq?.number ?? 0} CANCEL\r\n` +
  `Reason: ${reason}\r\nContent-Length: 0\r\n\r\n`

/** A PRACK in a dialog; false: there is nothing that it could acknowledge. */
export function takePrack(
  reliable: Reliable1xx | undefined,
  prack: SipMessage,
  now: number,
): boolean {
  const rack = parseRAck(prack.get('RAck') ?? '')
  return rack !== undefined && reliable?.acknowledged(rack, now) === true
}
