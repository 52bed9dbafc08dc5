/** The server's own front page says what is there. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'prettier'
import { expect, test } from 'vitest'
import { CallTimes, Traffic } from '../../../engine/sip-server/core/traffic.ts'
import { optionMarkdown } from '../../../engine/sip-server/program/command-line.ts'
import { prometheusText } from '../../../engine/sip-server/metrics.ts'
import { inviteClient, nonInviteClient } from '../../../engine/sip-server/transaction/client.ts'
import { inviteServer, nonInviteServer } from '../../../engine/sip-server/transaction/server.ts'
import { stateDiagram } from '../../support/state-diagram.ts'

const folder = 'engine/sip-server'
const readme = readFileSync(join(folder, 'README.md'), 'utf8')

test('its state diagrams are those of the tables that run', () => {
  const drawn = [...readme.matchAll(/```mermaid\n([^`]*)\n```/g)].map(([, text]) => text)
  expect(drawn).toEqual([
    stateDiagram(inviteClient, ['calling']),
    stateDiagram(inviteServer, ['proceeding']),
    stateDiagram(nonInviteClient, ['trying']),
    stateDiagram(nonInviteServer, ['trying']),
  ])
})

test('its table of options is the table that is read', async () => {
  const [, shown = ''] = /<!-- options -->\n([^]*)<!-- \/options -->/.exec(readme) ?? []
  const table = `<!-- options -->\n\n${optionMarkdown().join('\n')}\n\n<!-- /options -->`
  const pretty = await format(table, { parser: 'markdown', printWidth: 100, proseWrap: 'preserve' })
  expect(`<!-- options -->\n${shown}<!-- /options -->\n`).toBe(pretty)
})

test('every file and folder that it names exists', () => {
  const named = [...readme.matchAll(/`((?:[a-z0-9-]+\/)+[a-z0-9-]*(?:\.ts|\.mjs)?|[a-z-]+\.ts)`/g)]
  const missing = named
    .map(([, path = '']) => path)
    .filter((path) => !existsSync(join(folder, path)) && !existsSync(path))
  expect(named.length).toBeGreaterThan(30)
  expect(missing).toEqual([])
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
