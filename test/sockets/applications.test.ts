import { expect, onTestFinished, test } from 'vitest'
import { HookHost } from '../../engine/hooks/hook-host.ts'
import { startCallRig, type CallRig } from '../support/call-rig.ts'
import { sdp } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

async function rigWith(text: string, name = 'hooks.ts') {
  const file = join(temporaryFolder(), name)
  writeFileSync(file, text)
  const rig = await startCallRig({ withTcp: true })
  const lines: unknown[] = []
  const hooks = new HookHost({
    file,
    timeoutMs: 1_000,
    fallback: 'continue',
    memoryMb: 256,
    environment: {},
    now: () => performance.now(),
    wallNow: () => Date.now(),
    schedule: (act, ms) => {
      const timer = setTimeout(act, ms)
      return () => clearTimeout(timer)
    },
    log: (...line) => void lines.push(line),
  })
  onTestFinished(async () => {
    hooks.stop()
    await rig.stop()
  })
  await hooks.start()
  const port = rig.server.listeners[0]?.port ?? 0
  const way = { protocol: 'udp', host: '127.0.0.1', port } as const
  hooks.serveApplications({ runs: rig.applications, way, randomSecret: () => 'secret' })
  await rig.until(() => rig.applications.candidate() !== undefined)
  return { ...rig, hooks, lines }
}

async function place(rig: CallRig, number: string) {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri(number))
  caller.request('INVITE', leg, { body: sdp('offer') })
  return { caller, leg }
}

const ownConnection = `
import Srf from 'drachtio-srf'
const srf = new Srf()
srf.connect({ host: '192.0.2.1', port: 9022, secret: 'cymru' })
srf.invite((req, res) => res.send(486, 'So sorry, busy right now'))
`

test('a file that connects to a drachtio server of its own is unchanged', async () => {
  const rig = await rigWith(ownConnection)
  await rig.node()
  const { caller } = await place(rig, '1555')
  expect((await caller.next('486 INVITE')).startLine).toContain('So sorry, busy right now')
})

const answersOrHangs = `
export const onInvite = () => undefined
export default (srf) => {
  srf.invite(async (req, res, next) => {
    if (req.calledNumber === '1')
      return srf.createUAS(req, res, { localSdp: ${JSON.stringify(sdp('answer'))} })
    if (req.calledNumber === '2') for (;;);
    if (req.calledNumber === '3') process.exit(0)
    next()
  })
}
`

test.each(['2', '3'])(
  'a file that hangs or exits (%s): its calls end, and others go on without it',
  async (number) => {
    const rig = await rigWith(answersOrHangs)
    const node = await rig.node()
    const first = await place(rig, '1')
    first.caller.learn(first.leg, await first.caller.next('200 INVITE'))
    first.caller.request('ACK', first.leg)
    const second = await place(rig, number)
    node.reply(await node.next('INVITE'), 486, { tag: 'b' })
    await second.caller.next('486 INVITE')
    first.caller.reply(await first.caller.next('BYE'), 200)
    const records = [await rig.record(), await rig.record()]
    expect(records.map(({ denialCode }) => denialCode)).toContain('application_lost')
    await rig.until(() => rig.applications.candidate() !== undefined)
  },
)

test('while the file is loaded again no call goes past it', async () => {
  const rig = await rigWith(ownConnection)
  const node = await rig.node()
  const first = rig.applications.candidate()?.run
  let isTaken = false
  const reloaded = rig.hooks.reload()
  const passed: string[] = []
  // The old thread takes calls until the new one does, and answers those for a while.
  while (!isTaken) {
    const { caller } = await place(rig, '1')
    const isLast = rig.applications.candidate()?.run !== first
    await Promise.race([
      caller.next('486 INVITE'),
      node.next('INVITE').then((invite) => {
        passed.push(invite.text)
        return node.reply(invite, 486, { tag: 'b' })
      }),
    ])
    isTaken = isLast && rig.applications.candidate() !== undefined
  }
  await reloaded
  expect(passed).toEqual([])
})

const connected = `
const Srf = require('drachtio-srf')
const srf = new Srf()
srf.connect({ host: '127.0.0.1', port: 9022, secret: 'cymru' })
  .on('connect', (err, hostport) => console.log('connected to', hostport))
`

/** As the documentation of drachtio-srf shows them: an announcement, a bridge, a proxy. */
const documented = {
  uas: `${connected}
srf.invite(async (req, res) => {
  const dialog = await srf.createUAS(req, res, { localSdp: req.body })
  setTimeout(() => dialog.destroy(), 50)
})`,
  b2bua: `${connected}
srf.invite((req, res) => {
  srf.createB2BUA(req, res, 'sip:1777@192.0.2.100', { localSdpB: req.body })
    .then(({ uas, uac }) => {
      uas.on('destroy', () => uac.destroy())
      uac.on('destroy', () => uas.destroy())
    })
    .catch((err) => console.log('call failed', err))
})`,
  proxy: `${connected}
srf.invite((req, res) => {
  srf.proxyRequest(req, ['sip:1777@192.0.2.101'], { recordRoute: true, followRedirects: true })
    .then((results) => console.log(JSON.stringify(results.finalStatus)))
})`,
}

test('an announcement of its own: the application answers, and hangs up', async () => {
  const rig = await rigWith(documented.uas, 'hooks.cjs')
  const { caller, leg } = await place(rig, '1555')
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  caller.reply(await caller.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'callee' })
})

test.each(['b2bua', 'proxy'] as const)('a call that passes through a %s', async (shape) => {
  const rig = await rigWith(documented[shape], 'hooks.cjs')
  const node = await rig.node()
  const { caller, leg } = await place(rig, '1555')
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  const records = [await rig.record(), await rig.record()]
  expect(records.map(({ calledNumber }) => calledNumber).toSorted()).toEqual(['1555', '1777'])
})

/** As the README of drachtio-srf has them, but that it declares `Srf` twice in one of them. */
const readme = {
  proxy: `
const Srf = require('drachtio-srf');
const srf = new Srf();

srf.connect({
  host: '192.168.32.5',
  port: 9022,
  secret: 'cymru'
});

srf.invite((req, res) => {
  srf.proxyRequest(req, ['sip.example1.com', 'sip.example2.com'], {
    recordRoute: true,
    followRedirects: true,
    provisionalTimeout: '2s'
  }).then((results) => {
    console.log(JSON.stringify(results));
  });
});`,
  'back-to-back user agent': `
const Srf = require('drachtio-srf');
const srf = new Srf();

srf.connect({
  host: '192.168.32.5',
  port: 9022,
  secret: 'cymru'
});

srf.invite((req, res) => {
  srf.createB2BUA('sip:1234@10.10.100.1', req, res, {localSdpB: req.body})
    .then(({uas, uac}) => {
      console.log('call connected');

      // when one side terminates, hang up the other
      uas.on('destroy', () => { uac.destroy(); });
      uac.on('destroy', () => { uas.destroy(); });
      return;
    })
    .catch((err) => {
      console.log(\`call failed to connect: \${err}\`);
    });
});`,
}

test.each([
  ['proxy', '1555'],
  ['back-to-back user agent', '1234'],
] as const)('the %s of the README runs unchanged', async (shape, number) => {
  const rig = await rigWith(readme[shape], 'hooks.cjs')
  const node = await rig.node()
  const { caller, leg } = await place(rig, '1555')
  const invite = await node.next('INVITE')
  expect(invite.uri).toContain(`sip:${number}@`)
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  node.request('BYE', node.calledLeg(invite, 'b'))
  caller.reply(await caller.next('BYE'), 200)
  const records = [await rig.record(), await rig.record()]
  expect(records.map(({ disposition }) => disposition)).toEqual(['ANSWERED', 'ANSWERED'])
})

test('the OPTIONS ping of the README gets an answer', async () => {
  const rig = await rigWith(
    `
const Srf = require('drachtio-srf');
const srf = new Srf();

srf.connect({host: '127.0.0.1', port: 9022, secret: 'cymru'});

srf.on('connect', (err, hp) => {
  if (err) return console.log(\`Error connecting: \${err}\`);
  console.log(\`connected to server listening on \${hp}\`);

  setInterval(optionsPing, 100);
});

function optionsPing() {
  srf.request('sip:tighthead.drachtio.org', {
    method: 'OPTIONS',
    headers: {
      'Subject': 'OPTIONS Ping'
    }
  }, (err, req) => {
    if (err) return console.log(\`Error sending OPTIONS: \${err}\`);
    req.on('response', (res) => {
      console.log(\`Response to OPTIONS ping: \${res.status}\`);
    });
  });
}
srf.invite((req, res) => res.send(486))
`,
    'hooks.cjs',
  )
  await rig.until(() => JSON.stringify(rig.lines).includes('Response to OPTIONS ping: 200'))
})
