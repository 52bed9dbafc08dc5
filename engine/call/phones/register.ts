/** REGISTER, between the SIP library and the registrar. */
import type { Log } from '../../../schema/contracts/log.ts'
import type { PhoneAnswer, Registrar } from '../../registrar/registrar.ts'
import type { Answer, Headers, SipRequest } from '../signalling.ts'
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import { respond } from '../sip-headers.ts'
import type { UserAgent } from '../user-agent/user-agent.ts'

export interface RegisterDeps {
  readonly registrar: Pick<Registrar, 'handle'>
  readonly client: Pick<UserAgent, 'noteRegistered'>
  readonly log: Log
}

/** Answers one REGISTER. */
export function answerRegister(
  request: ReceivedRequest,
  answer: Answer,
  { registrar, client, log }: RegisterDeps,
): void {
  const { method, headers } = request
  const accept = (result: PhoneAnswer): void => {
    if (result.status < 300) client.noteRegistered(request)
    request.isFromStranger = result.isToStranger === true
    respondToPhone(answer, result)
  }
  registrar
    .handle({ method, headers, source: sourceOf(request) })
    .then(accept, (error: unknown) => {
      log('error', 'a REGISTER could not be handled', { error })
      respond(answer, 500)
    })
}

export function respondToPhone(answer: Answer, { status, reason, headers }: PhoneAnswer): void {
  const lines: Headers = {}
  for (const [name, value] of Object.entries(headers))
    // The library would join several values with commas, which RFC 3261 §7.3.1 forbids for challenges.
    lines[name] = typeof value === 'string' ? value : value.join(`\r\n${name}: `)
  respond(answer, status, reason, { headers: lines })
}

export const sourceOf = ({
  protocol,
  sourceAddress: address,
  sourcePort: port,
}: Pick<SipRequest, 'protocol' | 'sourceAddress' | 'sourcePort'>) => ({ protocol, address, port })
