import { describe, expect, test } from 'vitest'
import { digestSecrets } from '../../../control/resources/extensions.ts'
import { all, execute } from '../../../schema/sql/query.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import {
  challengesOf,
  loaded,
  Phone,
  reloaded,
  readsSeveral,
  startRegistrar,
  withExtensions,
  type WorldOptions,
} from './phone.ts'

describe.each(eachDatabase)('the registrar on $database', ({ open }) => {
  const start = async (options: WorldOptions = {}) =>
    startRegistrar({ store: options.store ?? (await withExtensions(await open())), ...options })

  test.each(['MD5', 'SHA-256'] as const)('a phone registers with digest %s', async (algorithm) => {
    const world = await start()
    const phone = new Phone(world, { algorithm, userAgent: readsSeveral })
    const challenge = await phone.challenged()
    expect(challenge.status).toBe(401)
    expect(challengesOf(challenge).map((value) => /algorithm=([\w-]+)/.exec(value)?.[1])).toEqual([
      'SHA-256',
      'MD5',
    ])
    const answer = await phone.register()
    expect(answer).toMatchObject({
      status: 200,
      headers: { Contact: '<sip:101@203.0.113.7:5060>;expires=3600' },
    })
    expect(world.registrar.statusOf('acme.example', '101')).toMatchObject({
      status: 'registered',
      userAgent: readsSeveral,
      contacts: [{ uri: 'sip:101@203.0.113.7:5060' }],
    })
  })

  test('an unknown user gets what a wrong password gets', async () => {
    const answers = []
    for (const options of [{ password: 'wrong' }, { user: '999' }, { user: "1'OR'1" }]) {
      const world = await start()
      const phone = new Phone(world, options)
      const first = await phone.challenged()
      const second = await phone.register()
      const shape = [first, second].map(({ status, reason, headers }) => [
        status,
        reason,
        Object.keys(headers),
        challengesOf({ status, reason, headers }).map((value) =>
          value.replace(/nonce="[^"]*"/, ''),
        ),
      ])
      answers.push(shape)
      expect(world.failed).toEqual([`203.0.113.7 ${phone.user}@acme.example`])
      expect(world.registrar.statusOf('acme.example', phone.user).status).toBe('unregistered')
    }
    expect(answers[1]).toEqual(answers[0])
    expect(answers[2]).toEqual(answers[0])
    expect(answers[0]?.[1]?.[0]).toBe(401)
  })

  test('a domain that is none of ours is not told apart from one of ours', async () => {
    const { ask } = await start()
    const headers = { to: '<sip:101@elsewhere.example>', 'call-id': 'x', cseq: '1 REGISTER' }
    const source = { protocol: 'udp', address: '203.0.113.9', port: 5_060 }
    const answer = await ask({ method: 'REGISTER', headers, source })
    expect(answer.status).toBe(401)
    expect(challengesOf(answer)[0]).toContain('realm="elsewhere.example"')
  })

  test('a password registers its own extension and no other', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.challenged()
    const to = '<sip:102@acme.example>'
    expect(await phone.register({ to })).toMatchObject({ status: 403 })
    expect(world.registrar.contactsOf('acme.example', '102')).toEqual([])
  })

  test('a replayed REGISTER is challenged as stale and changes nothing', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.challenged()
    const authorization = phone.credentials()
    expect((await phone.send({ contact: phone.contact, authorization })).status).toBe(200)
    const replay = await phone.send({ contact: '<sip:101@198.51.100.66>', authorization })
    expect(replay.status).toBe(401)
    expect(challengesOf(replay)[0]).toContain('stale=true')
    expect(world.failed).toEqual([])
    expect(world.registrar.contactsOf('acme.example', '101')).toHaveLength(1)
  })

  test('a nonce serves many requests with growing counts until it expires; then stale=true', async () => {
    const world = await start()
    const phone = new Phone(world)
    for (let refresh = 0; refresh < 3; refresh++) expect((await phone.register()).status).toBe(200)
    world.time.advance(300_000)
    const expired = await phone.register()
    expect([expired.status, challengesOf(expired)[0]?.includes('stale=true')]).toEqual([401, true])
    phone.learn(expired)
    expect((await phone.register()).status).toBe(200)
  })

  test('a nonce is good only for the address that it was sent to, and guesses with it cost no other client', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.challenged()
    const thief = new Phone(world, { address: '198.51.100.66', password: 'guess' })
    thief.nonce = phone.nonce
    const answer = await thief.register()
    expect(challengesOf(answer)[0]).toContain('stale=true')
    expect(world.failed).toEqual([])
  })

  test('a made-up nonce does not tell whether the password was right', async () => {
    const answers = []
    for (const password of ['secret-101', 'wrong']) {
      const phone = new Phone(await start(), { password, address: '198.51.100.66' })
      phone.nonce = 'made-up'
      const answer = await phone.register()
      answers.push(challengesOf(answer).map((value) => value.replace(/nonce="[^"]*"/, '')))
    }
    expect(answers[0]).toEqual(answers[1])
  })

  test('after a lock-out the right password is not looked at', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.challenged()
    world.lockedOut.add('203.0.113.7 101@acme.example')
    expect((await phone.register()).status).toBe(401)
  })

  test('bindings are on disk before the 200, and a new process goes on with them', async () => {
    const world = await start()
    const phone = new Phone(world, { port: 40_000, protocol: 'tcp' })
    await phone.challenged()
    let isAnswered = false
    const headers = phone.headers({
      contact: '<sip:101@10.0.0.5>;q=0.5;+sip.instance="<urn:uuid:1>";reg-id=1',
      path: '<sip:edge@203.0.113.7;lr>',
      supported: 'path',
      authorization: phone.credentials(),
    })
    const answer = world.registrar
      .handle({ method: 'REGISTER', headers, source: phone.source })
      .then((value) => {
        isAnswered = true
        return value
      })
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    expect(isAnswered).toBe(false)
    world.time.advance(50)
    expect((await answer).headers['Path']).toBe('<sip:edge@203.0.113.7;lr>')
    expect((await loaded(world.deps)).contactsOf('ACME.example', '101')).toEqual([
      {
        uri: 'sip:101@10.0.0.5',
        routes: ['<sip:edge@203.0.113.7;lr>'],
        nextHop: undefined,
        q: 500,
        source: phone.source,
      },
    ])
  })

  test('a REGISTER without Contact asks what is there', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.register()
    world.time.advance(100_000)
    const answer = await phone.send({ authorization: phone.credentials() })
    expect(answer.headers['Contact']).toBe('<sip:101@203.0.113.7:5060>;expires=3500')
  })

  test('an extension that another process deletes while its phone registers gets no binding', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.challenged()
    const headers = phone.headers({ contact: phone.contact, authorization: phone.credentials() })
    const answer = world.registrar.handle({ method: 'REGISTER', headers, source: phone.source })
    const { db } = world.store
    await execute(world.store, db.deleteFrom('extension').where('extension', '=', '101'))
    world.time.advance(50)
    expect((await answer).status).toBe(500)
    expect(world.registrar.contactsOf('acme.example', '101')).toEqual([])
  })

  test('a phone whose Contact has maddr is called where its REGISTER came from', async () => {
    const world = await start()
    const { address, port } = new Phone(world).source
    const contact = `<sip:1900@${address}:${port};maddr=203.0.113.9>`
    await new Phone(world).register({ contact })
    expect(world.registrar.contactsOf('acme.example', '101')).toMatchObject([
      { nextHop: `sip:${address}:${port};transport=udp` },
    ])
  })

  test.each(['224.0.1.75', '0.0.0.0', '[ff02::1]', '192.0.2.1;maddr=239.1.2.3'])(
    'a Contact of no single host is refused: %s',
    async (host) => {
      const world = await start()
      const refused = await new Phone(world).register({ contact: `<sip:101@${host}>` })
      expect([refused.status, refused.reason]).toEqual([400, 'Bad Contact Header'])
      expect(world.registrar.contactsOf('acme.example', '101')).toEqual([])
    },
  )

  test('a refresh outlives a restart, also when the stored binding is gone meanwhile', async () => {
    const world = await start()
    const phone = new Phone(world)
    await phone.register({ expires: '60' })
    for (const lost of [false, true]) {
      if (lost) await execute(world.store, world.store.db.deleteFrom('binding'))
      world.time.advance(50_000)
      await phone.register({ expires: '60' })
      const restarted = (await loaded(world.deps)).statusOf('acme.example', '101')
      expect(restarted).toEqual(world.registrar.statusOf('acme.example', '101'))
      expect(restarted.contacts[0]?.expiresAt).toBeGreaterThan(world.time.now() + 59_000)
    }
  })

  test('a binding ends when it expires, in memory and on disk', async () => {
    const world = await start()
    await new Phone(world).register({ expires: '60' })
    const rows = async () => {
      await world.registrar.flush()
      return (await all(world.store, world.store.db.selectFrom('binding').select('id'))).length
    }
    world.time.advance(59_940)
    expect(world.registrar.contactsOf('acme.example', '101')).toHaveLength(1)
    world.time.advance(60)
    expect(world.registrar.contactsOf('acme.example', '101')).toEqual([])
    expect(await rows()).toBe(1)
    world.time.advance(70_000)
    expect(await rows()).toBe(0)
    expect(world.registrar.telemetry()).toMatchObject({
      registered_extensions: 0,
      registered_contacts: 0,
    })
    // Nothing is left that would run.
    expect(world.time.waiting).toBe(0)
  })

  test.each([
    ['MD5', { ha1: 'md5' }],
    ['deletion', { ha1: undefined }],
  ])('phones are gone after a change from outside: %s', async (_what, { ha1 }) => {
    const world = await start()
    await new Phone(world).register()
    await new Phone(world, { user: '102' }).register()
    const { db } = world.store
    const { md5, sha256 } = digestSecrets('101', 'acme.example', 'another-secret')
    const change =
      ha1 === undefined
        ? db.deleteFrom('extension').where('extension', '=', '101')
        : db
            .updateTable('extension')
            .set({ ha1_md5: md5, ha1_sha256: sha256 })
            .where('extension', '=', '101')
    await execute(world.store, change)
    await reloaded(world)
    expect(world.registrar.statusOf('acme.example', '101').status).toBe('unregistered')
    expect(world.registrar.statusOf('acme.example', '102').status).toBe('registered')
    expect((await loaded(world.deps)).telemetry()['registered_contacts']).toBe(1)
  })

  test('phones behind NAT are kept alive by UDP, each once in 25 s and spread; others are not', async () => {
    const world = await start()
    await new Phone(world, { user: '101', port: 40_000 }).register({
      contact: '<sip:101@10.0.0.5>',
    })
    await new Phone(world, { user: '102' }).register()
    world.time.advance(25_000)
    expect(world.keptAlive).toEqual(['sip:101@10.0.0.5 via sip:203.0.113.7:40000;transport=udp'])
    world.time.advance(50_000)
    expect(world.keptAlive).toHaveLength(3)
  })

  test('an INVITE of a phone must prove the number in From', async () => {
    const world = await start()
    const phone = new Phone(world)
    const invite = (from: string, credentials?: string) =>
      world.registrar.authenticate({
        method: 'INVITE',
        headers: {
          from: `"Me" <sip:${from}@ACME.example;transport=udp>;tag=1`,
          ...(credentials === undefined ? {} : { 'proxy-authorization': credentials }),
        },
        source: phone.source,
      })
    const challenge = invite('101')
    expect(challenge).toMatchObject({ kind: 'refused', answer: { status: 407 } })
    if (challenge.kind === 'refused') phone.learn(challenge.answer)
    expect(invite('102', phone.credentials('INVITE'))).toMatchObject({
      kind: 'refused',
      answer: { status: 403 },
    })
    expect(invite('101', phone.credentials('INVITE'))).toMatchObject({
      kind: 'extension',
      extension: { extension: '101', domain: 'acme.example' },
    })
  })

  test('a phone that hides its number in From must prove the one that it prefers to us', async () => {
    const world = await start()
    const phone = new Phone(world)
    const invite = (preferred: string, authorization = '', mustExist = false) =>
      world.registrar.authenticate(
        {
          method: 'INVITE',
          headers: {
            from: '"Anonymous" <sip:anonymous@Anonymous.invalid>;tag=1',
            'P-Preferred-Identity': preferred,
            'proxy-authorization': authorization,
          },
          source: phone.source,
        },
        mustExist,
      )
    const own = '"Me" <sip:101@acme.example>'
    const challenge = invite(own)
    expect(challenge).toMatchObject({ kind: 'refused', answer: { status: 407 } })
    if (challenge.kind === 'refused') phone.learn(challenge.answer)
    expect(invite('<sip:102@acme.example>', phone.credentials('INVITE'))).toMatchObject({
      answer: { status: 403 },
    })
    expect(invite(own, phone.credentials('INVITE'))).toMatchObject({
      extension: { extension: '101' },
    })
    // RFC 3325 §9.2: a tel URI may stand beside it, before or behind.
    for (const both of [`<tel:+12025550190>, ${own}`, `${own},<tel:+12025550190>`, `tel:+1,${own}`])
      expect(invite(both, phone.credentials('INVITE'))).toMatchObject({
        extension: { extension: '101' },
      })
    expect(invite('<sip:101@elsewhere.example>')).toEqual({
      kind: 'stranger',
      domain: 'elsewhere.example',
    })
    // A carrier says who calls in P-Asserted-Identity.
    expect(invite(own, '', true)).toEqual({ kind: 'stranger' })
  })

  test('who claims no number of ours is a stranger; a trunk may bring users of ours that do not exist', async () => {
    const { registrar } = await start()
    const source = { protocol: 'udp', address: '203.0.113.9', port: 5_060 }
    const kind = (from: string, mustExist: boolean): string =>
      registrar.authenticate({ method: 'INVITE', headers: { from }, source }, mustExist).kind
    expect(kind('<sip:101@elsewhere.example>', false)).toBe('stranger')
    expect(kind('<tel:+15551234>', false)).toBe('stranger')
    expect(kind('<sip:+15551234@acme.example>', false)).toBe('refused')
    expect(kind('<sip:+15551234@acme.example>', true)).toBe('stranger')
    expect(kind('<sip:101@acme.example>', true)).toBe('refused')
    // It would be charged to the extension.
    for (const spelling of ['1-01', '%2810%291', '1.0%201;isub=1'])
      expect(kind(`<sip:${spelling}@acme.example>`, true)).toBe('refused')
  })

  test('a phone whose registration outlives a restart is told to the guard as proven, with its port', async () => {
    const world = await start()
    expect((await new Phone(world).register()).status).toBe(200)
    expect(world.proven).toEqual(['203.0.113.7:5060 101@acme.example'])
    world.proven.length = 0
    expect((await loaded(world.deps)).telemetry()['registered_contacts']).toBe(1)
    expect(world.proven).toEqual(['203.0.113.7:5060 101@acme.example'])
  })
})
