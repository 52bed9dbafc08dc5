/** The server's own front page says what is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'prettier'
import { expect, test } from 'vitest'
import { optionMarkdown } from '../../../engine/sip-server/program/command-line.ts'
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
