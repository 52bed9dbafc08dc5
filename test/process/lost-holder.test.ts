/** A call rings at a phone of another instance, and that instance is killed. */
import { afterEach, describe, expect, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { sdp } from '../support/sip-peer.ts'
import { recordRoutes } from '../support/two-nodes.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const SECRET_KEY = 'A'.repeat(43)

describe.runIf(hasPostgres)('the instance of a ringing phone is killed', () => {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close()
  }, 120_000)

  async function start(name: string, url: string): Promise<TollgateProcess> {
    const instance = await TollgateProcess.start(twoPhones, {
      ...patientInstances,
      DATABASE_URL: url,
      SECRET_KEY,
      NODE_NAME: name,
      TRUSTED_SOURCES: '192.0.2.0/24',
    })
    closers.push(() => instance.stop())
    return instance
  }

  async function register(tollgate: TollgateProcess, user: string): Promise<DigestPhone> {
    const account = { user, domain, password: passwordOf(user) }
    const phone = await DigestPhone.open(tollgate.listener(), account)
    closers.push(() => phone.close())
    // A phone behind NAT: only the instance that it has registered with reaches it.
    phone.peer.contact = `sip:${user}@10.9.9.${user.slice(2)}:5060`
    expect((await phone.signOn()).status).toBe(200)
    return phone
  }

  /** 101 at the first instance calls 102 at the second one, where it rings. */
  async function ring() {
    const { url, drop } = await freshDatabase()
    closers.push(drop)
    const [one, two] = [await start('sbc-1', url), await start('sbc-2', url)]
    const [caller, callee] = [await register(one, '101'), await register(two, '102')]
    const leg = await eventually(async () => {
      const asked = await caller.call('102')
      const isRinging = (): boolean => callee.peer.inbox.some(({ method }) => method === 'INVITE')
      const isRefused = (): boolean => caller.peer.inbox.some(({ status }) => status === 480)
      await eventually(() => expect(isRinging() || isRefused()).toBe(true))
      if (!isRinging()) caller.peer.request('ACK', asked)
      caller.peer.inbox.splice(0)
      expect(isRinging()).toBe(true)
      return asked
    }, 20_000)
    const invite = await callee.peer.next('INVITE')
    callee.peer.reply(invite, 180, { tag: 'b' })
    await caller.peer.next('180 INVITE')
    return { one, two, caller, callee, leg, invite }
  }

  test('the caller hears 503 within seconds, and the answer of the phone gets ACK and BYE', async () => {
    const { two, caller, callee, leg, invite } = await ring()
    await two.kill()
    const killedAt = performance.now()
    expect((await caller.answerTo(leg)).status).toBe(503)
    expect(performance.now() - killedAt).toBeLessThan(25_000)
    await two.restart()
    callee.peer.reply(invite, 200, { tag: 'b', body: sdp('answer'), headers: recordRoutes(invite) })
    await callee.peer.next('ACK')
    callee.peer.reply(await callee.peer.next('BYE'), 200)
  })

  test('a phone that has registered elsewhere meanwhile is called there', async () => {
    const { one, two, caller, leg } = await ring()
    await two.kill()
    const moved = await register(one, '102')
    const again = await moved.peer.next('INVITE')
    moved.peer.reply(again, 200, { tag: 'c', body: sdp('answer') })
    expect((await caller.answerTo(leg)).status).toBe(200)
  })
})
