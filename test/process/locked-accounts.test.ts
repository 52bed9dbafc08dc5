/**
 * A phone with an old password, beside a phone of the same extension with the right one, behind one
 * address.
 */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { sdp } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'

let tollgate: TollgateProcess
let token: string
beforeAll(async () => {
  const seed = {
    tenants: [{ slug: 'acme', domains: [domain] }],
    extensions: ['101', '102'].map((extension) => ({
      tenant: 'acme',
      extension,
      password: `secret-${extension}`,
      display_name: `Phone ${extension}`,
    })),
  }
  // Loopback represents the internet.
  tollgate = await TollgateProcess.start(seed, {
    TRUSTED_SOURCES: '192.0.2.0/24',
    DRAIN_SECONDS: '0',
  })
  token = await tollgate.createKey('--name', 'ops', '--scopes', '*')
})
afterAll(() => tollgate.stop())

async function phone(user: string, password = `secret-${user}`): Promise<DigestPhone> {
  const opened = await DigestPhone.open(tollgate.listener(), { user, domain, password })
  onTestFinished(() => opened.close())
  return opened
}

async function api(method: string, path: string) {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
  })
  return { status: answer.status, data: ((await answer.json()) as { data: unknown }).data }
}

/** The final answer to a call. */
async function callTo(number: string, caller: DigestPhone): Promise<number> {
  const leg = await caller.call(number)
  const { status } = await caller.answerTo(leg)
  caller.peer.request('ACK', leg)
  return status
}

test('a phone with a wrong password locks no other phone out, is shown, and is unlocked by hand', async () => {
  const [right, wrong, callee] = [await phone('101'), await phone('101', 'old'), await phone('102')]
  for (const each of [right, callee]) expect((await each.signOn()).status).toBe(200)
  callee.peer.always('INVITE', 200, { tag: 'c', body: sdp('answer') })
  for (let attempt = 0; attempt < 12; attempt++) expect((await wrong.signOn()).status).toBe(401)

  // The one that has registered calls, and registers again.
  for (let call = 0; call < 3; call++) expect(await callTo('102', right)).toBe(200)
  expect((await right.signOn()).status).toBe(200)

  // One that has shown nothing yet waits: its right password may be a lucky guess.
  const late = await phone('101')
  expect((await late.signOn()).status).toBe(401)
  expect(await api('GET', '/guard/bans')).toMatchObject({
    data: [{ source: '127.0.0.1', account: `101@${domain}`, reason: 'wrong_passwords' }],
  })

  expect((await api('DELETE', '/guard/bans/127.0.0.1')).status).toBe(200)
  expect((await api('GET', '/guard/bans')).data).toEqual([])
  expect((await late.signOn()).status).toBe(200)
})
