/** The server's own front page says what is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CallTimes } from '../../../engine/sip-server/core/call-times.ts'
import { Traffic } from '../../../engine/sip-server/core/traffic.ts'
import { optionHelp } from '../../../engine/sip-server/program/command-line.ts'
import { prometheusText } from '../../../engine/sip-server/metrics-listener.ts'

const folder = 'engine/sip-server'
const readme = readFileSync(join(folder, 'README.md'), 'utf8')

test('every option that it names is one', () => {
  const [, section = ''] = /## Use it in place of drachtio-server\n([^]*?)\n## /.exec(readme) ?? []
  const known = new Set(optionHelp().flatMap((line) => line.match(/--[a-z-]+/g) ?? []))
  const named = section.match(/`--[a-z-]+/g) ?? []
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !known.has(name.slice(1)))).toEqual([])
})

test('every metric is listed', () => {
  const text = prometheusText({
    version: 'v',
    startedAt: 0,
    applications: 0,
    sizes: {},
    traffic: new Traffic(),
    callTimes: { inbound: new CallTimes(), outbound: new CallTimes() },
    dialogs: { inbound: 0, outbound: 0 },
    load: { lagMs: 0, share: 1, refused: 0 },
  })
  const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name)
  expect(names.length).toBeGreaterThan(10)
  expect(names.filter((name) => !readme.includes(`\`${name}`))).toEqual([])
})
