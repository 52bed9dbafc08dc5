/** Several applications, written on drachtio-srf as it is published: over TLS, called by the server, tagged. */
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  createSipServer,
  type SipServer,
  type SipServerOptions,
} from '../../../engine/sip-server/index.ts'
import { Authority, type Certificate } from '../../support/certificates.ts'
import { SipPeer, sdp } from '../../support/sip-peer.ts'
import {
  connectByTcp,
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

async function connected(
  server: SipServer,
  tags: readonly string[],
  prepare: (srf: Srf) => void,
): Promise<void> {
  const app = await connectByTcp(server, { tags }, prepare)
  onTestFinished(() => app.close())
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

test('tags choose among the connected applications; call details go where they are wanted', async () => {
  const { server, peer, uri } = await start({
    routeRequest: ({ uri: wanted }) => ({ tag: wanted.includes('sales') ? 'sales' : 'support' }),
  })
  const taken: string[] = []
  const details: unknown[][] = []
  for (const tag of ['sales', 'support'])
    await connected(server, [tag], (srf) => {
      srf.invite((_req, res) => {
        taken.push(tag)
        res.send(486)
      })
      if (tag === 'support')
        for (const kind of ['attempt', 'stop'])
          srf.on(`cdr:${kind}`, (source: string, time: string, ...rest: { status: number }[]) =>
            details.push([kind, source, typeof time, ...rest.slice(0, -1)]),
          )
    })
  for (const user of ['sales', 'help', 'sales']) {
    peer.request('INVITE', peer.leg(uri(user)), { body: sdp('caller') })
    await peer.next(486)
  }
  expect(taken).toEqual(['sales', 'support', 'sales'])
  await eventually(() => expect(details).toHaveLength(6))
  expect(details[0]).toEqual(['attempt', 'network', 'string'])
  expect(details[1]).toEqual(['stop', 'application', 'string', 'call-rejected'])
})
