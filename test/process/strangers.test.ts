/** What strangers can do to the program over its sockets: loopback is not trusted here, and stands for the internet. */
import { createSocket, type Socket } from 'node:dgram'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'

let tollgate: TollgateProcess
const sockets: Socket[] = []

beforeEach(async () => {
  tollgate = await TollgateProcess.start(
    {
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions: [
        { tenant: 'acme', extension: '101', password: 'secret-101', display_name: '101' },
      ],
    },
    { TRUSTED_SOURCES: '192.0.2.0/24' },
  )
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.close()
  await tollgate.stop()
})

/** A stranger at this address of loopback. */
async function stranger(address: string) {
  const socket = createSocket('udp4')
  sockets.push(socket)
  /** Call-IDs of the calls that got 403: an answer without an ACK is repeated. */
  const refused = new Set<string>()
  socket.on('message', (bytes) => {
    const [, callId] = /^SIP\/2\.0 403 [^]*^Call-ID: (.*)\r$/im.exec(bytes.toString()) ?? []
    if (callId !== undefined) refused.add(callId)
  })
  await new Promise<void>((resolve) => socket.bind(0, address, resolve))
  const { port } = socket.address()
  let count = 0
  const invite = (): Promise<unknown> => {
    const id = `${address}-${port}-${(count += 1)}`
    const text = [
      `INVITE sip:1900555${count}@127.0.0.1:${tollgate.sipPort} SIP/2.0`,
      `Via: SIP/2.0/UDP ${address}:${port};branch=z9hG4bK${id};rport`,
      'Max-Forwards: 70',
      `From: <sip:x@stranger.example>;tag=${id}`,
      `To: <sip:1900555${count}@127.0.0.1>`,
      `Call-ID: ${id}`,
      'CSeq: 1 INVITE',
      `Contact: <sip:x@${address}:${port}>`,
      'Content-Length: 0',
      '',
      '',
    ].join('\r\n')
    return new Promise((resolve) => socket.send(text, tollgate.sipPort, '127.0.0.1', resolve))
  }
  return { invite, refused }
}

test('a thousand calls of strangers leave a few samples, one count, and a bounded log', async () => {
  const strangers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => stranger(`127.0.1.${index + 1}`)),
  )
  const answered = (): number => strangers.reduce((sum, { refused }) => sum + refused.size, 0)
  let invited = 0
  for (let round = 0; round < 20; round++)
    for (const one of strangers) {
      await one.invite()
      invited += 1
      if (invited % 10 > 0) continue
      // The share of unknown sources is 800 INVITEs at once, and 400 a second.
      await new Promise((resolve) => setTimeout(resolve, 10))
      // More would not find room in the socket of a program that stands still for a moment.
      await expect.poll(() => invited - answered()).toBeLessThan(100)
    }
  await expect.poll(answered).toBe(1_000)
  expect(tollgate.log.join('\n').length).toBeLessThan(32_768)
  expect(await tollgate.terminate()).toBe(0)
  // The second sample of a minute that began meanwhile.
  const samples = tollgate.calls()
  expect(samples.length).toBeGreaterThan(0)
  expect(samples.length).toBeLessThanOrEqual(20)
  const [counted] = tollgate.query<{ reason: string; calls: number }>(
    'SELECT reason, sum(calls) AS calls FROM refused_calls GROUP BY reason',
  )
  expect(counted).toEqual({ reason: 'unknown_source', calls: 1_000 })
})

test('calls that bear the address of a registered phone do not shut it out', async () => {
  // Not that of the program: the addresses of nodes of the platform are not shut out.
  const at = '127.0.0.3'
  const phone = await DigestPhone.open(
    { ...tollgate.listener(), advertisedHost: at },
    { user: '101', domain, password: 'secret-101' },
  )
  try {
    expect((await phone.signOn()).status).toBe(200)
    const forger = await stranger(at)
    for (let call = 0; call < 100; call++) await forger.invite()
    await expect.poll(() => tollgate.log.join()).toContain('a source is banned')
    const leg = await phone.call('999')
    expect((await phone.answerTo(leg)).status).not.toBe(403)
    expect((await phone.signOn()).status).toBe(200)
  } finally {
    phone.close()
  }
})

test('a call of an extension is dropped in simulation while the addresses of all its phones are banned', async () => {
  const account = { user: '101', domain, password: 'secret-101' }
  const open = (advertisedHost: string) =>
    DigestPhone.open({ ...tollgate.listener(), advertisedHost }, account)
  const phones = [await open('127.0.0.3'), await open('127.0.0.4')]
  const token = await tollgate.createKey('--name', 'all', '--scopes', '*')
  const tool = async (name: string, given: object) => {
    const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/mcp/tools/${name}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: JSON.stringify(given),
    })
    const { data } = (await response.json()) as { readonly data: Readonly<Record<string, unknown>> }
    expect([name, response.status]).toEqual([name, 200])
    return data
  }
  const verdict = async () => {
    const simulated = await tool('simulate_call', { from: '101', to: '999' })
    return [simulated['verdict'], simulated['explanation']]
  }
  const ban = (address: string) =>
    tool('ban_address', { address, reason: 'for the test', duration: 600 })
  try {
    for (const phone of phones) expect((await phone.signOn()).status).toBe(200)
    const registrations = { search: '101' }
    expect(await tool('list_registrations', registrations)).toMatchObject({ total: 2 })
    const before = await verdict()
    expect(before[0]).not.toBe('dropped')
    await ban('127.0.0.3')
    // The other phone is heard.
    expect(await verdict()).toEqual(before)
    const last = await ban('127.0.0.4')
    expect(await verdict()).toEqual(['dropped', expect.stringMatching(/^The source is banned/)])
    expect(await tool('list_bans', { address: '127.0.0.' })).toMatchObject({
      bans: [{ reason: 'operator' }, { reason: 'operator' }],
      total: 2,
    })
    await tool('undo_change', { change_id: last['change_id'], reason: 'for the test' })
    expect(await verdict()).toEqual(before)
  } finally {
    for (const phone of phones) phone.close()
  }
})
