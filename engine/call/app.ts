/** Which SIP method goes to which handler; everything else is refused. */
import type { InboundCallDeps } from './inbound-call.ts'
import { handleInboundCall } from './inbound-call.ts'
import type { Answer, SipRequest } from './sip/drachtio.ts'
import type { Registrar } from '../registrar/registrar.ts'
import { originate, type OriginateRequest, type OriginateResult } from './originate/originate.ts'
import { spy, type SpyRequest, type SpyResult } from './originate/spy.ts'
import { answerRegister } from './phones/register.ts'
import { HeaderFilter } from './sip/headers.ts'
import { ALLOW, allowedBut, respond } from './sip/srf-client.ts'
import { retryAfter } from './route.ts'
import { transferByApi, type TransferRequest, type TransferResult } from './transfer/by-api.ts'
import { takeRefer } from './transfer/refer.ts'

export interface CallControlDeps extends Omit<InboundCallDeps, 'filter' | 'onRefer'> {
  readonly registrar: InboundCallDeps['registrar'] & Pick<Registrar, 'handle'>
  /** Lower-case names of the `X-…` headers that pass between the legs, or all of them. */
  readonly passX?: 'all' | ReadonlySet<string>
}

/** Asked for so that they are refused here: what nobody asks for the server answers with 503. */
const refusedMethods = ['subscribe', 'publish', 'message', 'notify', 'info']

/** What the API starts. */
export interface CallControl {
  originate(request: OriginateRequest): Promise<OriginateResult>
  transfer(request: TransferRequest): Promise<TransferResult>
  spy(request: SpyRequest): SpyResult
}

/** Call control on a client that is not connected yet. */
export function startCallControl(deps: CallControlDeps): CallControl {
  const { client, passX = 'all' } = deps
  const filter = new HeaderFilter({ passX, ownHost: () => client.ownHost })
  const calls: InboundCallDeps = {
    ...{ ...deps, filter },
    onRefer: (participant, request, answer) => takeRefer(participant, request, answer, calls),
  }
  client.onLost((isLost) => deps.calls.connectionLost(isLost))
  client.handle('invite', (request, answer) => {
    if (request.stackDialogId) refuse(request, answer)
    else
      handleInboundCall(request, answer, calls).catch((error: unknown) => {
        // Before there was a call that could fail: who it is from could not be found out.
        deps.log('error', 'an INVITE could not be handled', { error })
        respond(answer, 500)
      })
  })
  client.handle('options', (request, answer) => {
    if (request.stackDialogId) refuse(request, answer)
    else answerOptions(answer, calls)
  })
  client.handle('register', (request, answer) =>
    answerRegister(request, answer, deps.registrar, deps.log),
  )
  client.handle('refer', refuseRefer)
  for (const method of refusedMethods) client.handle(method, refuse)
  client.handle('*', refuse)
  return {
    originate: (request) => originate(request, calls),
    transfer: (request) => transferByApi(request, calls),
    spy: (request) => spy(request, calls),
  }
}

/** RFC 3261 §11.2: what an INVITE would get at this moment. */
function answerOptions(answer: Answer, deps: InboundCallDeps): void {
  if (deps.calls.isDraining) respond(answer, 503, undefined, { headers: retryAfter(deps) })
  else respond(answer, 200, undefined, { headers: capabilities })
}

const capabilities = { Allow: ALLOW, Accept: 'application/sdp', Supported: 'timer, replaces' }

/** RFC 3515 §2.4.4: outside a call there is nobody whom we could transfer. */
function refuseRefer(request: SipRequest, answer: Answer): void {
  respond(answer, request.stackDialogId ? 481 : 403)
}

function refuse(request: SipRequest, answer: Answer): void {
  if (request.method === 'ACK') return
  // In a dialog that was ours a moment ago; a PRACK may come before there is one.
  if (request.stackDialogId) respond(answer, request.method === 'PRACK' ? 200 : 481)
  else respond(answer, 405, undefined, { headers: { Allow: allowedBut(request.method) } })
}
