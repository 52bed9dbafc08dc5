/** What an agent proposes, as people see it and decide on the console. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBrowser, postFrom } from '../support/console-browser.ts'
import { startConsoleRig } from '../support/console-rig.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

const confirm = (page: Page, action: string) =>
  page.getByRole('dialog').getByRole('button', { name: action }).click()

interface Keys {
  readonly data: readonly { name: string; uuid: string; state: string }[]
}

async function keyNamed(page: Page, name: string): Promise<Keys['data'][number] | undefined> {
  const script = `fetch('/api/v1/application-keys?limit=200').then((answer) => answer.json())`
  const keys: Keys = await page.evaluate(script)
  return keys.data.find((key) => key.name === name)
}

test(
  'a person sees at once what an agent proposes, approves what is shown, refuses the rest, and undoes a change',
  { timeout: 180_000 },
  async () => {
    const { tollgate, console: opened } = await startConsoleRig(browser)
    const { page, complaints, inaccessible } = opened
    const isClean = async () => expect(await inaccessible()).toEqual([])
    const made = await tollgate.createKey('--name', 'night agent', '--scopes', '*:read,mcp:propose')
    await tollgate.createKey('--name', 'leaked')
    await tollgate.createKey('--name', 'in use')
    const propose = async (identifier: string): Promise<void> => {
      const path = '/api/v1/mcp/tools/propose_change'
      const reason = `<b>${identifier}</b> is on a public page`
      const body = { tool: 'revoke_sbc_api_key', arguments: { identifier }, reason }
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { Authorization: `Bearer ${made.trim()}`, 'Content-Type': 'application/json' },
      })
      expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
    }

    await page.getByRole('link', { name: 'Proposals' }).click()
    await page.getByText('No agent has proposed anything.').waitFor()
    await isClean()
    // The event stream brings it.
    await propose('leaked')
    await row(page, 'leaked').getByText('open').waitFor()
    await row(page, 'leaked').getByText('high').waitFor()
    await isClean()

    await row(page, 'leaked').getByRole('link').click()
    await page.getByText('<b>leaked</b> is on a public page').waitFor()
    await page.getByText('night agent').waitFor()
    await isClean()
    await page.getByRole('button', { name: 'Approve' }).click()
    await isClean()
    await page.getByRole('dialog').getByLabel('Note').fill('rotated it')
    await confirm(page, 'Approve')
    await page.getByRole('heading', { level: 2 }).getByText('approved').waitFor()
    await page.getByText('user:admin').waitFor()
    await page.getByText('rotated it').waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Keys' }).click()
    await row(page, 'leaked').getByText('revoked').waitFor()

    await propose('in use')
    await page.getByRole('link', { name: 'Proposals' }).click()
    await row(page, 'in use').getByRole('link').click()
    await page.getByRole('button', { name: 'Refuse' }).click()
    await confirm(page, 'Refuse')
    await page.getByRole('heading', { level: 2 }).getByText('refused').waitFor()
    await page.getByRole('link', { name: 'Proposals' }).click()
    await page.getByLabel('State').selectOption('refused')
    await row(page, 'in use').waitFor()
    expect(await row(page, 'leaked').count()).toBe(0)
    await page.getByRole('link', { name: 'Keys' }).click()
    await row(page, 'in use').getByText('active').waitFor()

    const change = { reason: 'it may have leaked' }
    const { uuid } = (await keyNamed(page, 'in use')) ?? { uuid: '' }
    expect(await postFrom(page, `/application-keys/${uuid}/suspend`, change)).toBe(200)
    await page.getByRole('link', { name: 'Changes' }).click()
    await row(page, '"leaked"').getByRole('link', { name: 'proposed' }).waitFor()
    expect(await row(page, '"leaked"').getByRole('button').count()).toBe(0)
    await row(page, '"in use"').getByText('made').waitFor()
    await isClean()
    await row(page, '"in use"').getByRole('button', { name: /^Undo/ }).click()
    await page.getByRole('dialog').getByLabel('Reason').fill('it has not')
    await isClean()
    await confirm(page, 'Undo')
    await row(page, '"in use"').getByText('undone').waitFor()
    expect(await row(page, '"in use"').getByRole('button').count()).toBe(0)
    expect(await keyNamed(page, 'in use')).toMatchObject({ state: 'active' })
    expect(complaints).toEqual([])
  },
)
