/**
 * Real phones on two instances of one PostgreSQL database: a phone that has registered at one
 * instance is called through either, by each transport; an instance is killed, and its phones are
 * reached again where they register next.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { PostgresStatements } from '../../schema/sql/postgres-statements.ts'
import { Baresip, type BaresipOptions } from '../support/baresip.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { freshDatabase, hasPostgres } from '../support/postgres.ts'
import { transferSaved } from '../support/saved-transfer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { finalNotify, refer, replacing } from '../support/transfer-rig.ts'
import { domain, fourPhones, passwordOf } from '../support/two-phones.ts'
import { eventually } from '../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const { certFile, keyFile } = authority.sign('tollgate', ...loopbackNames)
/** That by UDP is called as phones of one instance are. */
const transports = ['tcp', 'tls'] as const

describe.runIf(hasPostgres)('phones of two instances', () => {
  let drop: () => Promise<void>
  let database: PostgresStatements
  let a: TollgateProcess
  let b: TollgateProcess
  let token: string
  const cleanUp: (() => unknown)[] = []

  beforeAll(async () => {
    const fresh = await freshDatabase()
    drop = fresh.drop
    database = new PostgresStatements({ url: fresh.url })
    const environment = {
      DATABASE_URL: fresh.url,
      SECRET_KEY: 'A'.repeat(43),
      SIP_TLS_CERT: certFile,
      SIP_TLS_KEY: keyFile,
      // The other instance may stand still for a moment with its phones.
      NODE_TIMEOUT_MS: '6000',
    }
    a = await TollgateProcess.start(fourPhones, { ...environment, NODE_NAME: 'a' })
    b = await TollgateProcess.start(fourPhones, { ...environment, NODE_NAME: 'b' })
    token = await a.createKey('--name', 'desk', '--kind', 'pbx', '--scopes', '*')
    // The instances are asked again and again.
    await database.execute('UPDATE application_key SET rate_limit_rpm = 100000')
    for (const instance of [a, b])
      await eventually(async () => {
        const { data } = (await ask(instance, '/nodes')) as { data: readonly { state: string }[] }
        expect(data.map(({ state }) => state)).toEqual(['serving', 'serving'])
      })
  }, 120_000)
  afterEach(async () => {
    for (const step of cleanUp.splice(0).toReversed()) await step()
    await forgetPhones()
  })
  afterAll(async () => {
    for (const instance of [a, b]) await instance.stop()
    await database.close()
    await drop()
  }, 120_000)

  async function phone(
    instance: TollgateProcess,
    user: string,
    options: Partial<BaresipOptions> = {},
  ): Promise<Baresip> {
    const sipPort = options.transport === 'tls' ? instance.tlsPort : instance.sipPort
    const started = await Baresip.start({
      user,
      domain,
      sipPort,
      password: passwordOf(user),
      caFile: authority.file,
      ...options,
    })
    cleanUp.push(() => started.stop())
    await started.registered()
    return started
  }

  const ask = async (instance: TollgateProcess, path: string, method = 'GET'): Promise<unknown> => {
    const options = { method, headers: { Authorization: `Bearer ${token}` } }
    const answer = await fetch(`http://127.0.0.1:${instance.apiPort}/api/v1${path}`, options)
    return answer.json()
  }

  const extensions = async (instance: TollgateProcess) => {
    const all = (await ask(instance, '/pbx/extensions/details')) as { data: readonly Extension[] }
    return all.data
  }

  /** The phones of a test are killed, and say nothing. */
  const forgetPhones = async (): Promise<void> => {
    for (const { id, contacts } of await extensions(b))
      for (const { uri } of contacts) {
        const contact = encodeURIComponent(uri)
        await ask(b, `/pbx/extensions/${id}/registrations?contact=${contact}`, 'DELETE')
      }
    for (const instance of [a, b])
      await eventually(async () => {
        for (const { contacts } of await extensions(instance)) expect(contacts).toEqual([])
      })
  }

  /** Waits until this instance knows that the phone has registered at `at`. */
  const knows = (instance: TollgateProcess, user: string, at: string) =>
    eventually(async () => {
      const found = (await extensions(instance)).find(({ extension }) => extension === user)
      expect(found?.contacts.map((contact) => contact.node)).toEqual([at])
    })

  const callsAre = (...expected: readonly string[]) =>
    eventually(async () => {
      const live = (await ask(b, '/pbx/calls/active')) as readonly { readonly state: string }[]
      expect(live.map(({ state }) => state)).toEqual(expected)
    })

  interface Extension {
    readonly id: number
    readonly extension: string
    readonly contacts: readonly { readonly uri: string; readonly node: string }[]
  }

  const lastRecord = async (count: number) =>
    eventually(async () => {
      const records = await database
        .prepare<{ disposition: string; hangup_by: string; attempts: string }>(
          'SELECT * FROM cdr ORDER BY id',
        )
        .all([])
      expect(records).toHaveLength(count)
      return records.at(-1)
    })

  /** An instance that starts again for more than ten seconds is not heard meanwhile. */
  const faults = (): readonly string[] =>
    [a, b]
      .flatMap((instance) => instance.faults)
      .filter((line) => !line.includes('sends no heartbeat'))

  const countRecords = async () => (await database.prepare('SELECT id FROM cdr').all([])).length

  /** `caller` dials 102, which is picked up; both hear each other. */
  async function talk(caller: Baresip, called: Baresip): Promise<void> {
    await caller.command('dial', `sip:102@${domain}`)
    await called.next('CALL_INCOMING')
    await called.command('accept')
    await Promise.all([caller.next('CALL_ESTABLISHED'), called.next('CALL_ESTABLISHED')])
    await Promise.all([caller.hearsMore(), called.hearsMore()])
  }

  /**
   * An instance that has just started is known to the others when they have read its heartbeat:
   * within two seconds.
   */
  async function canCall(caller: Baresip): Promise<{ dialled: number }> {
    let dialled = 0
    await eventually(async () => {
      dialled++
      await caller.command('dial', `sip:102@${domain}`)
      const { type } = await caller.next('CALL_RINGING', 'CALL_CLOSED')
      expect(type).toBe('CALL_RINGING')
    })
    await caller.command('hangup')
    await caller.next('CALL_CLOSED')
    return { dialled }
  }

  async function hangUp(one: Baresip, other: Baresip): Promise<void> {
    await one.command('hangup')
    await Promise.all([one.next('CALL_CLOSED'), other.next('CALL_CLOSED')])
  }

  test.each(transports)(
    'a phone by %s is called through its own instance and through the other one: both talk, hold, hang up and give up',
    async (transport) => {
      const called = await phone(a, '102', { transport, answerMode: 'manual' })
      await knows(b, '102', 'a')
      for (const [instance, user] of [
        [a, '101'],
        [b, '103'],
      ] as const) {
        const caller = await phone(instance, user)
        let count = await countRecords()
        await talk(caller, called)
        await caller.command('hold')
        await callsAre('HELD')
        await caller.command('resume')
        await callsAre('ACTIVE')
        await called.command('hold')
        await callsAre('HELD')
        await called.command('resume')
        await callsAre('ACTIVE')
        await hangUp(caller, called)
        expect(await lastRecord(++count)).toMatchObject({
          disposition: 'ANSWERED',
          hangup_by: 'caller',
        })

        await talk(caller, called)
        await hangUp(called, caller)
        expect(await lastRecord(++count)).toMatchObject({
          disposition: 'ANSWERED',
          hangup_by: 'callee',
        })

        await caller.command('dial', `sip:102@${domain}`)
        await called.next('CALL_INCOMING')
        await hangUp(caller, called)
        expect(await lastRecord(++count)).toMatchObject({ disposition: 'CANCELED' })

        await caller.command('dial', `sip:102@${domain}`)
        await called.next('CALL_INCOMING')
        await hangUp(called, caller)
        expect(await lastRecord(++count)).toMatchObject({ disposition: 'BUSY' })
      }
      expect(faults()).toEqual([])
    },
  )

  test.each(transports)(
    'when the instance of a phone by %s is killed, its call is heard on; the phone is reached where it registers next',
    async (transport) => {
      const called = await phone(a, '102', { transport, answerMode: 'manual' })
      await knows(b, '102', 'a')
      const caller = await phone(b, '101')
      await talk(caller, called)
      await a.kill()
      await Promise.all([caller.hearsMore(), called.hearsMore()])
      await caller.command('hangup')
      await caller.next('CALL_CLOSED')
      await called.stop()

      // It registers at the other instance.
      const moved = await phone(b, '102', { transport, answerMode: 'manual' })
      await talk(caller, moved)
      await hangUp(moved, caller)
      await moved.stop()

      // Its instance is back, and so is the phone.
      await a.restart()
      await forgetPhones()
      const back = await phone(a, '102', { transport, answerMode: 'manual' })
      const again = await phone(b, '103')
      await knows(b, '102', 'a')
      await canCall(again)
      await back.next('CALL_CLOSED')
      back.events.length = 0
      await talk(again, back)
      await hangUp(again, back)
      expect(faults()).toEqual([])
    },
  )

  // baresip 1.0.0 has no attended transfer: the transferor is scripted, the others are phones.
  test('attended transfer of a call at one instance to a call at the other: the two phones hear each other, and a crash does not end it', async () => {
    const before = await countRecords()
    const [two, three] = [await phone(a, '102'), await phone(b, '103')]
    // An instance that has just started is known to the others when they have read its heartbeat.
    await knows(b, '102', 'a')
    await knows(a, '103', 'b')
    const talkTo = async (instance: TollgateProcess, number: string) => {
      const account = { user: '104', domain, password: passwordOf('104') }
      const desk = await DigestPhone.open(instance.listener(), account)
      cleanUp.push(() => desk.close())
      const leg = await desk.call(number)
      desk.peer.learn(leg, await desk.answerTo(leg))
      desk.peer.request('ACK', leg)
      return { peer: desk.peer, leg }
    }
    const [first, second] = [await talkTo(a, '102'), await talkTo(b, '103')]
    await Promise.all([two.next('CALL_ESTABLISHED'), three.next('CALL_ESTABLISHED')])
    const replaces = encodeURIComponent(replacing(second.leg))
    await refer(first.peer, first.leg, `sip:103@${domain}?Replaces=${replaces}`)
    expect((await finalNotify(first.peer)).body).toContain('200')
    second.peer.reply(await second.peer.next('BYE'), 200)
    first.peer.request('BYE', first.leg)
    await first.peer.next('200 BYE')
    await Promise.all([two.hearsMore(), three.hearsMore()])
    await transferSaved(a)
    await a.kill()
    await a.restart()
    await Promise.all([two.hearsMore(), three.hearsMore()])
    await three.command('hangup')
    await Promise.all([two.next('CALL_CLOSED'), three.next('CALL_CLOSED')])
    // The two calls, and what connects the instances, on both.
    await lastRecord(before + 4)
    expect(faults()).toEqual([])
  })
})
