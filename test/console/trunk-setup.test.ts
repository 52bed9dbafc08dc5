/**
 * A stranger at an empty console: a trunk that registers, a rate deck from a file, a route, and a
 * call over it.
 */
import { createHash } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { formsOf, openBrowser, openConsole, row } from '../support/console-browser.ts'
import { admin } from '../support/console-rig.ts'
import { openPeer } from '../support/scripted-node.ts'
import { sdp, type SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const account = {
  username: 'trunk-7',
  password: ' a secret of the carrier',
  realm: 'telco.example',
}
const caller = '12025550100'

const deck = ['prefix,description,rate_per_minute', '49,Germany,0.60', '4915,Germany mobile,0.90']
const wrongDeck = [deck[0], deck[1], '4915,Germany mobile,cheap', '44x,United Kingdom,0.01']

/**
 * Answers each REGISTER as a registrar that wants the password (RFC 2617 §3.2.2 without qop), until
 * the peer is closed.
 */
async function register(registrar: SipPeer, isOver: () => boolean): Promise<void> {
  const nonce = 'c0ffee'
  const { username, password, realm } = account
  const challenge = `WWW-Authenticate: Digest realm="${realm}", nonce="${nonce}", algorithm=MD5`
  const md5 = (text: string) => createHash('md5').update(text).digest('hex')
  while (!isOver()) {
    const request = await registrar.next('REGISTER').catch(() => undefined)
    // The person at the console takes longer than a peer waits.
    if (request === undefined) continue
    const given = request.get('Authorization')
    const [, uri = ''] = /uri="([^"]*)"/.exec(given) ?? []
    const response = md5(
      `${md5(`${username}:${realm}:${password}`)}:${nonce}:${md5(`REGISTER:${uri}`)}`,
    )
    const isRight =
      given.includes(`username="${username}"`) && given.includes(`response="${response}"`)
    if (isRight) registrar.reply(request, 200, { tag: 'r', headers: ['Expires: 3600'] })
    else registrar.reply(request, 401, { tag: 'r', headers: [challenge] })
  }
}

test(
  'an empty system gets a registering trunk, a rate deck by CSV, a route and a customer in the console',
  { timeout: 180_000 },
  async () => {
    const environment = { ...patientInstances, ADMIN_PASSWORD: admin.password }
    const tollgate = await TollgateProcess.start({}, environment)
    onTestFinished(() => tollgate.stop())
    const carrier = await openPeer(tollgate)
    carrier.always('OPTIONS', 200, { tag: 'probed' })
    let isOver = false
    onTestFinished(() => void (isOver = true))
    void register(carrier, () => isOver)
    const browser = await openBrowser()
    onTestFinished(() => browser.close())
    const { page, complaints, signIn, inaccessible } = await openConsole(browser, tollgate)
    onTestFinished(() => page.context().close())
    await signIn(admin.username, admin.password)
    const { dialog, field, choice, confirm, open } = formsOf(page)

    await open('Rate plans', 'New rate plan')
    await field('Name').fill('retail')
    await field('Currency').fill('euro')
    await confirm('Create')
    await dialog.getByText('must be three capital letters').waitFor()
    expect(await field('Name').inputValue()).toBe('retail')
    await field('Currency').fill('EUR')
    await confirm('Create')
    await page.getByRole('link', { name: 'retail' }).click()
    await page.getByRole('button', { name: 'Import CSV' }).click()
    await field('Table').fill(wrongDeck.join('\n'))
    await confirm('Check')
    await dialog.getByText('2 lines are not valid').waitFor()
    await row(page, '4915,Germany mobile,cheap').getByText('rate_per_minute').waitFor()
    await row(page, '44x,United Kingdom').getByRole('cell', { name: '4', exact: true }).waitFor()
    await field('Table').fill([...deck, ',Average,0.05'].join('\n'))
    await confirm('Check')
    await row(page, ',Average,0.05').getByText('every number').waitFor()
    await dialog.getByRole('checkbox').check()
    await confirm('Check')
    await dialog.getByText('1 rate has no prefix: every number').waitFor()
    await dialog.getByRole('checkbox').uncheck()
    await field('Table').fill(deck.join('\n'))
    await confirm('Check')
    await dialog.getByText('The table is valid: 2 new rates').waitFor()
    expect(tollgate.query('SELECT id FROM rate')).toEqual([])
    await confirm('Import')
    await row(page, 'Germany mobile').getByText('0.90').waitFor()
    await row(page, 'Germany mobile')
      .getByRole('button', { name: /^Change/ })
      .click()
    await field('Price of a minute').fill('0.80')
    await confirm('Save')
    await row(page, 'Germany mobile').getByText('0.80').waitFor()
    const exported = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Export as CSV' }).click()
    expect((await exported).suggestedFilename()).toBe('rates.csv')

    await open('Customers', 'New customer')
    await field('Name').fill('Acme')
    await choice('Rate plan').selectOption('retail')
    await field('Numbers').fill(caller)
    await field('Opening balance').fill('10')
    await confirm('Create')
    await page.getByRole('link', { name: 'Acme' }).waitFor()

    await open('Carriers', 'New carrier')
    await field('Name').fill('telco')
    await choice('The carrier knows us').selectOption('by our registration')
    await field('User name').fill(account.username)
    await dialog.getByLabel('Password', { exact: true }).fill(account.password)
    await field('Address').fill('not a host')
    await dialog.getByLabel('Port', { exact: true }).fill(String(carrier.port))
    await confirm('Create')
    await dialog.getByText('must be an IPv4 address').waitFor()
    const focused = () => page.evaluate('document.activeElement.name')
    await expect.poll(focused).toBe('gateways.0.host')
    expect(await inaccessible()).toEqual([])
    await field('Address').fill('127.0.0.1')
    await confirm('Create')
    await page.getByRole('link', { name: 'telco' }).click()
    await page.getByText('registered', { exact: true }).waitFor()
    // The password is not asked for again, and stays.
    await page.getByRole('button', { name: 'Change' }).click()
    await dialog.getByText('More settings').click()
    await field('Realm').fill(account.realm)
    await confirm('Save')
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('registered', { exact: true }).waitFor()
    const [stored] = tollgate.query<{ auth_realm: string; auth_username: string }>(
      'SELECT auth_realm, auth_username FROM carrier',
    )
    expect(stored).toEqual({ auth_realm: account.realm, auth_username: account.username })

    await open('Outbound routes', 'New outbound route')
    await field('Name').fill('everything')
    await choice('Carrier').selectOption('telco')
    await confirm('Create')
    await row(page, 'everything').getByText('every number').waitFor()

    await page.getByRole('link', { name: 'Carriers', exact: true }).click()
    await page.getByRole('link', { name: 'telco' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText('1 outbound route uses it: everything').waitFor()
    await confirm('Delete')
    await dialog.getByText('Something still refers to this carrier').waitFor()
    await confirm('Cancel')

    const pbx = await openPeer(tollgate)
    pbx.always('OPTIONS', 200, { tag: 'probed' })
    await open('Dispatcher sets', 'New dispatcher set')
    await field('Name').fill('pbx')
    await field('Address').fill('127.0.0.1')
    await dialog.getByLabel('Port', { exact: true }).fill(String(pbx.port))
    await confirm('Create')
    await row(page, 'pbx').getByText('1 of 1').waitFor()
    const leg = pbx.leg(`sip:4930123@127.0.0.1:${tollgate.sipPort}`)
    pbx.request(
      'INVITE',
      { ...leg, from: leg.from.replace('sip:peer@', `sip:${caller}@`) },
      { body: sdp('caller') },
    )
    const invite = await carrier.next('INVITE')
    expect(invite.text).toMatch(/^INVITE sip:4930123@/)
    carrier.reply(invite, 486, { tag: 'busy' })
    await pbx.next(486)
    await tollgate.waitForCalls(1)
    // The browser's own lines about what was refused.
    expect(complaints.filter((line) => !/ 40[09] /.test(line))).toEqual([])
  },
)
