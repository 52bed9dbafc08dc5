/** An application on drachtio-srf as it is published to which the server connects. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createSipServer, type SipServerOptions } from '../../../engine/sip-server/index.ts'
import { Authority, type Certificate } from '../../support/certificates.ts'
import { SipPeer, sdp } from '../../support/sip-peer.ts'
import {
  newSrf,
  type Srf,
  type SrfDialog,
  type SrfRequest,
  type SrfResponse,
} from '../../support/srf.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { emitted, eventually } from '../../support/waiting.ts'

let authority: Authority
let certificate: Certificate

beforeAll(() => {
  authority = new Authority(temporaryFolder())
  certificate = authority.sign('server', 'IP:127.0.0.1', 'DNS:localhost')
})

async function start(options: Partial<SipServerOptions> = {}) {
  const server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    admin: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
    graceMs: 50,
    ...options,
  })
  await server.start()
  onTestFinished(() => server.stop())
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  onTestFinished(() => peer.close())
  const uri = (user: string): string => `sip:${user}@127.0.0.1:${listener.port}`
  return { server, peer, uri }
}

/** An application that waits for servers; where. */
async function listening(prepare: (srf: Srf) => void, tls?: object): Promise<number> {
  const srf = newSrf()
  prepare(srf)
  srf.on('error', () => undefined)
  const options = { host: '127.0.0.1', port: 0, secret: 'cymru' }
  const server = srf.listen(tls === undefined ? options : { ...options, tls })
  onTestFinished(() => void server.close())
  await emitted(server, 'listening')
  const { port } = server.address() as AddressInfo
  return port
}

/** Answers a call, and lets its connection go when it is over. */
async function serve(srf: Srf, req: SrfRequest, res: SrfResponse): Promise<SrfDialog> {
  const dialog = await srf.createUAS(req, res, { localSdp: sdp('app') })
  dialog.on('destroy', () => srf.endSession(req))
  return dialog
}

test.each(['tcp', 'tls'])(
  'the server connects by %s to the application of a call',
  async (kind) => {
    const dialogs: SrfDialog[] = []
    const tls = { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) }
    const port = await listening(
      (srf) =>
        srf.invite((req, res) => {
          void serve(srf, req, res).then((dialog) => dialogs.push(dialog))
        }),
      kind === 'tls' ? tls : undefined,
    )
    const { server, peer, uri } = await start({
      routeRequest: () => ({ uri: `${kind}://127.0.0.1:${port}` }),
      tls: { certFile: certificate.certFile, keyFile: certificate.keyFile, caFile: authority.file },
    })
    const calls = [peer.leg(uri('one')), peer.leg(uri('two'))]
    for (const leg of calls) {
      peer.request('INVITE', leg, { body: sdp('caller') })
      peer.learn(leg, await peer.next('200 INVITE'))
      peer.request('ACK', leg)
    }
    await eventually(() => expect(dialogs).toHaveLength(2))
    expect(server.stats()).toMatchObject({ dialled: 2, dialogs: 2 })
    for (const leg of calls) {
      peer.request('BYE', leg)
      await peer.next('200 BYE')
    }
    await eventually(() => expect(server.stats()).toMatchObject({ dialled: 0, dialogs: 0 }))
  },
)
