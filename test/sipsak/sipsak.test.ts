/** sipsak: pings, floods, broken requests against Tollgate; registering phones against the server alone. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSipServer, type SipServer } from '../../engine/sip-server/index.ts'
import { connectInProcess, type ConnectedSrf, type Srf } from '../support/srf.ts'
import { sipsak } from '../support/sipsak.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

let tollgate: TollgateProcess
let server: SipServer
let app: ConnectedSrf

beforeAll(async () => {
  tollgate = await TollgateProcess.start({})
  server = createSipServer({
    listen: (['udp', 'tcp'] as const).map((protocol) => ({ protocol, host: '127.0.0.1', port: 0 })),
    secret: 'cymru',
  })
  await server.start()
  app = await connectInProcess(server, {}, registrar)
})
afterAll(async () => {
  app.close()
  await server.stop()
  await tollgate.stop()
})

/** Transport, address of record and user of the Contact, as they came. */
const registered: string[] = []

/** Accepts every phone, and returns the binding. */
function registrar(srf: Srf): void {
  srf.register((request, response) => {
    const contact = request.get('Contact')
    registered.push(`${request.protocol} ${userOf(request.get('To'))} ${userOf(contact)}`)
    response.send(200, { headers: { Contact: `${contact};expires=60` } })
  })
}

const userOf = (value: string): string => /sip:([^@;>]+)@/.exec(value)?.[1] ?? ''

const uriAt = (user: string, port: number): string[] => ['-s', `sip:${user}@127.0.0.1:${port}`]
const ofTollgate = (user = 'ping'): string[] => uriAt(user, tollgate.sipPort)
const ofServer = (user: string, protocol = 'udp'): string[] =>
  uriAt(user, server.listeners.find((each) => each.protocol === protocol)?.port ?? 0)

const transports = ['udp', 'tcp'] as const

const expectAlive = async (): Promise<void> => {
  for (const transport of transports)
    expect(await sipsak(['-E', transport, ...ofTollgate()])).toMatchObject({ exitCode: 0 })
  expect(tollgate.faults).toEqual([])
}

test.each(transports)('OPTIONS by %s is answered with 200 and what we can', async (transport) => {
  const { exitCode, output } = await sipsak(['-vv', '-E', transport, ...ofTollgate()])
  expect(exitCode).toBe(0)
  expect(output).toContain('SIP/2.0 200 OK')
  expect(output).toMatch(/^Allow: .*INVITE/m)
})

test('a trace of hops ends here at the first one', async () => {
  const { exitCode, output } = await sipsak(['-T', ...ofTollgate()])
  expect(exitCode).toBe(0)
  expect(output).toMatch(/^0: .*200 OK/m)
})

test.each(transports)('a flood of requests by %s ends nothing', async (transport) => {
  const { output } = await sipsak(['-F', '-e', '2000', '-E', transport, ...ofTollgate()])
  expect(output).toContain('flood end reached')
  await expectAlive()
})

test('requests with ever more broken characters break nothing', async () => {
  for (let trashed = 1; trashed <= 40; trashed++)
    await sipsak(['-R', '-t', String(trashed), '--timer-t1=2', ...ofTollgate()], 5_000)
  await expectAlive()
})

test.each(transports)('a user registers by %s with the server alone', async (transport) => {
  const words = ['-U', '-i', '-x', '60', '-E', transport, ...ofServer('phone', transport)]
  expect(await sipsak(words)).toMatchObject({ exitCode: 0 })
  expect(registered.splice(0)).toEqual([`${transport} phone phone`])
})
