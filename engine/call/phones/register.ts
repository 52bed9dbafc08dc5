/** REGISTER, between the SIP library and the registrar. */
import type { PhoneAnswer, Registrar } from '../../registrar/registrar.ts'
import type { Answer, Headers, SipRequest } from '../sip/drachtio.ts'
import { respond, type Log } from '../sip/srf-client.ts'

/** Answers one REGISTER. */
export function answerRegister(
  request: SipRequest,
  answer: Answer,
  registrar: Pick<Registrar, 'handle'>,
  log: Log,
): void {
  const { method, headers } = request
  registrar.handle({ method, headers, source: sourceOf(request) }).then(
    (result) => respondToPhone(answer, result),
    (error: unknown) => {
      log('error', 'a REGISTER could not be handled', { error })
      respond(answer, 500)
    },
  )
}

export function respondToPhone(answer: Answer, { status, reason, headers }: PhoneAnswer): void {
  const lines: Headers = {}
  for (const [name, value] of Object.entries(headers))
    // The library would join several values with commas, which RFC 3261 §7.3.1 forbids for challenges.
    lines[name] = typeof value === 'string' ? value : value.join(`\r\n${name}: `)
  respond(answer, status, reason, { headers: lines })
}

export const sourceOf = ({ protocol, source_address: address, source_port: port }: SipRequest) => ({
  ...{ protocol, address, port },
})
