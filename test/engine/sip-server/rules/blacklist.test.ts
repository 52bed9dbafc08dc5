import { expect, onTestFinished, test } from 'vitest'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  isListed,
  readDenyList,
  watchBlacklist,
} from '../../../../engine/sip-server/rules/screening.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

test('addresses, networks and remarks, one a line', () => {
  const { addresses, networks, wrong } = readDenyList(
    '# all\n192.0.2.1\n 2001:db8::1 # one\n10.0.0.0/8\nhost.example\n10.0.0.0/99\n\n',
  )
  expect([...addresses]).toEqual(['192.0.2.1', '2001:db8::1'])
  expect(networks.check('10.1.2.3')).toBe(true)
  expect(wrong).toEqual(['host.example', '10.0.0.0/99'])
})

test.each([
  ['2001:DB8::1', '2001:db8::1'],
  ['2001:db8:0:0::1', '2001:db8::1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '::ffff:192.0.2.1'],
  ['192.0.2.1', '::ffff:192.0.2.1'],
  ['::ffff:192.0.2.0/120', '192.0.2.1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
])('the entry %s denies %s', (entry, address) => {
  expect(isListed(readDenyList(entry), address)).toBe(true)
  expect(isListed(readDenyList(entry), '2001:db8::2')).toBe(false)
})

test('the file is read again when it changes; one that is gone changes nothing', async () => {
  const path = join(temporaryFolder(), 'denied.txt')
  const lines: string[] = []
  let isGone = false
  const read = (): string | undefined => (isGone ? undefined : readFileSync(path, 'utf8'))
  writeFileSync(path, '192.0.2.1')
  const log = (_level: string, message: string): void => void lines.push(message)
  const list = watchBlacklist(path, read, log, 20)
  onTestFinished(() => list.stop())
  expect([list.denies('192.0.2.1'), list.denies('192.0.2.2')]).toEqual([true, false])
  // The first look at the file may come after the first change.
  let text = ''
  const rewritten = async (start: string, isSeen: () => boolean): Promise<void> => {
    text = start
    await expect
      .poll(() => {
        text += ' '
        writeFileSync(path, text)
        return isSeen()
      })
      .toBe(true)
  }
  await rewritten('192.0.2.0/29\nnonsense', () => list.denies('192.0.2.2'))
  expect(lines).toContain('some lines of the blacklist are not addresses')
  isGone = true
  await rewritten('x', () => lines.includes('the blacklist cannot be read'))
  expect(list.denies('192.0.2.2')).toBe(true)
})
