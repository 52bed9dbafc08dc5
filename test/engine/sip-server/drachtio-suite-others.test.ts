/**
 * What the other files of the suite of drachtio-server check, beside its fixtures (drachtio-suite). These are elsewhere:
 * applications in turn, one that is gone, IPv6 (drachtio-srf-lifecycle and -edges), tags, TLS and connections to an
 * application (drachtio-srf-applications, jambonz-like), PRACK, subscriptions, NOTIFY before the answer
 * (drachtio-srf-usages), glare and overlapping requests (core/session).
 */
import { expect, test } from 'vitest'
import { sdp } from '../../support/sip-peer.ts'
import { answered, call, hangUp, start, startBridge } from '../../support/sip-server-suite.ts'

test('registration with a name in Japanese, and one that ends all registrations', async () => {
  const names: string[] = []
  const { server } = await start((srf) =>
    srf.register((request, response) => {
      names.push(`${request.get('From')} ${request.get('Contact')}`)
      response.send(200)
    }),
  )
  const phone = await server.peer('tcp')
  const leg = phone.leg(server.uri('a'))
  const name = `"花岡 正典 (Agent)" <sip:a@example.com>;tag=1`
  Object.assign(leg, { from: name })
  phone.request('REGISTER', leg, { headers: ['Expires: 30'] })
  expect((await phone.next('200 REGISTER')).get('From')).toBe(name)
  const text = phone.request('REGISTER', leg, { headers: ['Expires: 0'] })
  await phone.next('200 REGISTER')
  phone.send(
    text
      .replace(/^Contact: .*$/m, 'Contact: *')
      .replaceAll(leg.branch, `${leg.branch}s`)
      .replace(`CSeq: ${leg.cseq} `, `CSeq: ${leg.cseq + 1} `),
  )
  await phone.next('200 REGISTER')
  expect(names[0]).toContain('花岡 正典 (Agent)')
  expect(names[2]).toBe(`${name} *`)
})

test('a very long Request-URI', async () => {
  const { server, callee } = await startBridge('tcp')
  const caller = await server.peer()
  const leg = caller.leg(`${server.uri('a'.repeat(1_500))};x=${'y'.repeat(1_500)}`)
  caller.request('INVITE', leg, { body: sdp('caller') })
  callee.reply(await callee.next('INVITE'), 200, { tag: 'b', body: sdp('callee') })
  await answered(caller, leg)
  await callee.next('ACK')
  await hangUp(caller, leg, callee)
})

test.each(['UPDATE', 'INFO'])('%s while the INVITE is not answered', async (method) => {
  const { server, srf } = await start((app) =>
    app.use(method.toLowerCase(), (_request, response) => response.send(200)),
  )
  const callee = await server.peer()
  const calling = srf.createUAC(callee.uri, { localSdp: sdp('app') })
  const invite = await callee.next('INVITE')
  callee.reply(invite, 183, { tag: 'b', body: sdp('early') })
  const leg = callee.calledLeg(invite, 'b')
  callee.request(method, leg)
  await callee.next(`200 ${method}`)
  callee.reply(invite, 200, { tag: 'b', body: sdp('callee') })
  await callee.next('ACK')
  expect((await calling).remote.sdp).toBe(sdp('callee'))
})

test('a re-INVITE that the BYE of the other side overtakes', async () => {
  const { server, callee } = await startBridge()
  const { caller, leg } = await call(server)
  const invite = await callee.next('INVITE')
  callee.reply(invite, 200, { tag: 'b', body: sdp('callee') })
  await answered(caller, leg)
  await callee.next('ACK')
  caller.request('INVITE', leg, { body: sdp('again') })
  callee.request('BYE', callee.calledLeg(invite, 'b'))
  await callee.next('200 BYE')
  caller.reply(await caller.next('BYE'), 200)
  expect((await caller.next((message) => message.status >= 200)).status).toBeGreaterThan(199)
})
