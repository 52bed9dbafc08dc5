/** Phones that misbehave, on raw sockets: the right answer, and nothing leaks. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'
const contacts = 1_000

let tollgate: TollgateProcess
let phones: DigestPhone[] = []

// Loopback is not trusted here: it stands for the internet.
beforeEach(async () => {
  tollgate = await TollgateProcess.start(
    {
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions: ['101', '102'].map((extension) => ({
        tenant: 'acme',
        extension,
        password: `secret-${extension}`,
        display_name: extension,
      })),
    },
    { TRUSTED_SOURCES: '192.0.2.0/24' },
  )
})
afterEach(async () => {
  for (const phone of phones) phone.close()
  phones = []
  await tollgate.stop()
})

async function phone(user: string, password = `secret-${user}`): Promise<DigestPhone> {
  const opened = await DigestPhone.open(tollgate.listener(), { user, domain, password })
  phones.push(opened)
  return opened
}

/** Sizes of tables in the process. */
async function figures(): Promise<Readonly<Record<string, number>>> {
  const key = await tollgate.createKey('--name', 'ops')
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/metrics/telemetry`, {
    headers: { authorization: `Bearer ${key}` },
  })
  const { data } = (await answer.json()) as {
    data: { engine: Record<string, number>; registrations: Record<string, number> }
  }
  return { ...data.engine, ...data.registrations }
}

const nonceOf = (challenge: { all(name: string): readonly string[] }): string =>
  /nonce="([^"]+)"/.exec(challenge.all('WWW-Authenticate').join())?.[1] ?? ''

test('of a thousand contacts for one user five are taken, and the others leave nothing', async () => {
  const one = await phone('101')
  one.learn(await one.register())
  let next = 0
  /** One REGISTER with so many new contacts; its own Contact ends with each. */
  const ask = async (count: number): Promise<number> => {
    const uris = Array.from({ length: count }, () => `sip:101@192.0.2.1:${5_000 + next++}`)
    const answer = await one.register([
      'Expires: 0',
      ...uris.map((uri) => `Contact: <${uri}>;expires=3600`),
      `Authorization: ${one.credentials('REGISTER')}`,
    ])
    return answer.status
  }
  const single: number[] = []
  for (let index = 0; index < 10; index++) single.push(await ask(1))
  expect(single).toEqual([200, 200, 200, 200, 200, 403, 403, 403, 403, 403])
  const many = new Set<number>()
  for (let asked = 10; asked < contacts; asked += 30) many.add(await ask(30))
  expect([...many]).toEqual([403])
  expect(tollgate.query('SELECT 1 FROM binding')).toHaveLength(5)
  expect(await figures()).toMatchObject({ contacts: 5, extensions: 1, sip_inboundRequests: 0 })
  expect(tollgate.faults).toEqual([])
})

test('a REGISTER replayed by an eavesdropper is challenged as stale', async () => {
  const [one, thief] = [await phone('101'), await phone('101', 'unknown')]
  one.learn(await one.register())
  const proof = `Authorization: ${one.credentials('REGISTER')}`
  expect((await one.register([proof])).status).toBe(200)
  const replay = await thief.register([proof])
  expect([replay.status, replay.get('WWW-Authenticate').includes('stale=true')]).toEqual([
    401,
    true,
  ])
  expect(tollgate.query<{ source_port: number }>('SELECT source_port FROM binding')).toEqual([
    { source_port: one.peer.port },
  ])
})

test('a nonce of before a restart is stale: the phone goes on without asking its user', async () => {
  const one = await phone('101')
  expect((await one.signOn()).status).toBe(200)
  await tollgate.terminate()
  await tollgate.restart()
  const challenge = await one.signOn()
  expect([challenge.status, challenge.get('WWW-Authenticate').includes('stale=true')]).toEqual([
    401,
    true,
  ])
  one.learn(challenge)
  expect((await one.signOn()).status).toBe(200)
})

test('an unknown user and a wrong password get the same answers', async () => {
  const answersOf = async (user: string) => {
    const guesser = await phone(user, 'guess-guess')
    const shapes = [await guesser.register(), await guesser.signOn()].map((answer) =>
      answer.text
        .replaceAll(nonceOf(answer), 'N')
        .replaceAll(/(?:tag=|branch=|rport=|Call-ID: |nonce=|CSeq: |:)[^\s;>,]+|\b10[19]\b/g, ''),
    )
    return shapes
  }
  expect(await answersOf('109')).toEqual(await answersOf('101'))
})

test('a phone behind NAT is acknowledged and hung up where it answers, not where its Contact points', async () => {
  const [callee, caller] = [await phone('101'), await phone('102')]
  // Its Contact address is unused; its packets come from another address.
  callee.peer.contact = 'sip:101@10.99.99.99:5060'
  expect((await callee.signOn()).status).toBe(200)
  const leg = await caller.call('101')
  const invite = await callee.peer.next('INVITE')
  expect(invite.uri).toBe(callee.peer.contact)
  callee.peer.reply(invite, 200, { tag: 'callee', body: sdp('answer') })
  const answer = await caller.answerTo(leg)
  expect(answer.status).toBe(200)
  caller.peer.learn(leg, answer)
  caller.peer.request('ACK', leg)
  expect((await callee.peer.next('ACK')).uri).toBe(callee.peer.contact)
  caller.peer.request('BYE', leg)
  callee.peer.reply(await callee.peer.next('BYE'), 200)
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
})
