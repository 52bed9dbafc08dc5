/** What holds at once when the program reads its configuration again, and what is said of the rest. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { SipServerProgram, type Files } from '../../../support/sip-server-program.ts'
import { emitted } from '../../../support/waiting.ts'

const conf = (sip: string, rest = ''): string => `<drachtio>
  <admin port="9022" secret="cymru">127.0.0.1</admin>
  <sip><contacts><contact>sip:127.0.0.1:0;transport=udp</contact></contacts>${sip}</sip>${rest}
</drachtio>`

const spammers = (value: string): string =>
  `<spammers action="reject"><header name="User-Agent"><value>${value}</value></header></spammers>`

async function start(text: string, words = '') {
  const files: Files = { 'd.xml': text }
  const program = await SipServerProgram.start(`-f d.xml --admin 127.0.0.1:0 ${words}`, { files })
  const peer = await program.peer()
  return {
    program,
    reread: (changed: string): void => {
      files['d.xml'] = changed
      program.reload()
    },
    /** The status that a request of this User-Agent gets. */
    ask: async (userAgent: string): Promise<number> => {
      const headers = [`User-Agent: ${userAgent}`]
      peer.request('OPTIONS', peer.leg(program.uri('a')), { headers })
      return (await peer.next(({ status }) => status > 199)).status
    },
  }
}

test('spammers, and whose OPTIONS get 200', async () => {
  const { reread, ask, program } = await start(conf(spammers('scanner')))
  expect([await ask('scanner'), await ask('dialer'), await ask('probe')]).toEqual([603, 503, 503])
  const probe = '<user-agent-options-auto-respond>probe</user-agent-options-auto-respond>'
  reread(conf(spammers('dialer') + probe))
  expect([await ask('scanner'), await ask('dialer'), await ask('probe')]).toEqual([503, 603, 200])
  expect(program.logged.at(-1)).toBe('info info the configuration was read again')
})

test('the level of the log, unless the command line has one', async () => {
  const level = (name: string): string =>
    conf('', `<logging><loglevel>${name}</loglevel></logging>`)
  const free = await start(level('error'))
  free.reread(level('debug'))
  expect(free.program.logged.at(-1)).toBe('debug info the configuration was read again')
  const fixed = await start(level('error'), '--loglevel warn')
  fixed.reread(level('debug'))
  expect(fixed.program.logged.at(-1)).toBe('warn info the configuration was read again')
})

test('request handlers; what the old one is asked it still answers', async () => {
  const handler = async (status: number, isHeld: boolean) => {
    const held: (() => void)[] = []
    const http = createServer((_question, response) => {
      const answer = () => response.end(JSON.stringify({ action: 'reject', data: { status } }))
      if (isHeld) held.push(answer)
      else answer()
    })
    http.listen(0, '127.0.0.1')
    await emitted(http, 'listening')
    onTestFinished(() => void http.close())
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
    const xml = `<request-handlers><request-handler>${url}</request-handler></request-handlers>`
    return { held, xml: conf('', xml) }
  }
  const [old, young] = [await handler(486, true), await handler(404, false)]
  const { reread, ask, program } = await start(old.xml)
  const first = ask('a')
  await expect.poll(() => old.held.length).toBe(1)
  reread(young.xml)
  const other = await program.peer()
  other.request('OPTIONS', other.leg(program.uri('a')))
  await other.next(404)
  old.held[0]?.()
  expect(await first).toBe(486)
})

test('the blacklist', async () => {
  const files: Files = { 'denied.txt': '192.0.2.1' }
  const words =
    '--listen udp/127.0.0.1:0 --admin 127.0.0.1:0 --secret s --blacklist-file denied.txt'
  const program = await SipServerProgram.start(words, { files })
  files['denied.txt'] = '192.0.2.1\n192.0.2.2'
  program.reload()
  expect(program.logged).toContainEqual(
    expect.stringContaining('the blacklist was read {"path":"denied.txt","addresses":2}'),
  )
})

test('what cannot hold before a restart is named, without its value', async () => {
  const { reread, program } = await start(conf('<timers><t1>500</t1></timers>'))
  reread(
    conf('<timers><t1>400</t1></timers>')
      .replace('cymru', 'other')
      .replace('127.0.0.1:0', '127.0.0.1:5999'),
  )
  expect(program.logged.slice(-4)).toEqual([
    'info warn --contact has changed: it takes effect at the next start',
    'info warn --secret has changed: it takes effect at the next start',
    'info warn <sip/timers/t1> has changed: it takes effect at the next start',
    'info info the configuration was read again',
  ])
})

test.each([
  ['is no XML', '<drachtio>&'],
  ['has a value that is not allowed', conf('<timers><t1>soon</t1></timers>')],
])('a file that %s changes nothing', async (_what, text) => {
  const { reread, ask, program } = await start(conf(spammers('scanner')))
  reread(text)
  expect(program.logged.at(-1)).toMatch(
    /^info error the configuration cannot be read again; nothing has changed \{"reason":/,
  )
  expect(await ask('scanner')).toBe(603)
})
