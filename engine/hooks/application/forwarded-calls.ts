/**
 * `req.proxy` and `srf.proxyRequest` of a file beside the main process. A proxy would have both
 * dialogs of a call end in the same process under the same Call-ID and tags, so the call is bridged
 * instead: its caller and its destinations see the same.
 */
import { readUri } from '../../../schema/sip/index.ts'
import type { ApplicationSrf, LibraryAgent, LibraryRequest } from './library.ts'

/** Makes `agent` bridge the calls that it is told to forward, one destination after the other. */
export function bridgeForwarded(srf: ApplicationSrf, agent: LibraryAgent): void {
  agent.proxy = (request, { destination }, tell) => {
    if (request.method !== 'INVITE') return tell(['NOK', 'only calls are forwarded here'])
    void forward(srf, request, destination).then((status) => {
      const callId = request.get('Call-ID') ?? ''
      const answer = `SIP/2.0 ${status} Final\r\nCall-ID: ${callId}\r\nCSeq: 1 INVITE\r\n\r\n`
      tell(['OK'], answer, { address: '', port: 0 })
      return tell(['OK', 'done'])
    })
    return undefined
  }
}

/** @returns the status that the caller has got. */
async function forward(
  srf: ApplicationSrf,
  request: LibraryRequest,
  [destination = '', ...others]: readonly string[],
): Promise<number> {
  const uri = withUser(destination, request.uri)
  const all = { proxyRequestHeaders: ['all'], proxyResponseHeaders: ['all'] }
  const options = { ...all, passFailure: others.length === 0 }
  try {
    const { uas, uac } = await srf.createB2BUA(request, request.res, uri, options)
    uas.on('destroy', () => uac.destroy())
    uac.on('destroy', () => uas.destroy())
    return 200
  } catch (error) {
    const status = statusOf(error)
    const isOver = others.length === 0 || status === 487 || status >= 600
    if (!isOver) return forward(srf, request, others)
    if (others.length > 0 && status !== 487) request.res.send(status)
    return status
  }
}

/** `sip.example.com` alone is a place for the number that is called. */
function withUser(destination: string, called: string): string {
  const { scheme, user, hostPort, params } = readUri(
    /^(sips?|tel):/i.test(destination) ? destination : `sip:${destination}`,
  )
  const { user: number } = readUri(called)
  return user === '' && number !== '' && hostPort !== ''
    ? `${scheme}:${number}@${hostPort}${params}`
    : destination
}

const statusOf = (error: unknown): number =>
  typeof error === 'object' && error !== null && 'status' in error && Number(error.status) >= 300
    ? Number(error.status)
    : 500
