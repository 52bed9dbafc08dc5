/** Decks as carriers send them, each in its own format, with the rates that they mean. */
import type { WrittenMapping } from '../../control/resources/decks/deck-mapping.ts'
import { workbook } from './workbook.ts'

export interface DeckFixture {
  readonly name: string
  readonly bytes: Buffer
  /** What a person says of it, beside the mapping that the preview proposes. */
  readonly said?: Partial<WrittenMapping>
  readonly rates: Readonly<Record<string, string>>
  /** Further fields of the first rate. */
  readonly first?: object
}

const windows1252 = (text: string): Buffer =>
  Buffer.from(text.replaceAll('€', '\u0080').replaceAll('–', '\u0096'), 'latin1')

const utf16be = (text: string): Buffer => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16()

export const deckFixtures: readonly DeckFixture[] = [
  {
    name: 'a plain deck with commas, a title and increments in one cell',
    bytes: Buffer.from(
      [
        'Northern Telecom - A-Z rate notification',
        'Currency: USD,Date: 2026-01-01',
        '',
        'Destination,Dial Code,Rate,Billing Increment,Effective Date',
        '"Germany, Fixed",49,0.0125,1/1,2026-01-10',
        'Germany Mobile,4915,.0375,30/6,2026-01-10',
        'United Kingdom,44,0.00800000,60/60,2026-01-10',
      ].join('\r\n'),
    ),
    rates: { 44: '0.008', 49: '0.0125', 4915: '0.0375' },
    first: {
      prefix: '44',
      description: 'United Kingdom',
      first_increment: 60,
      increment: 60,
      effective_from: '2026-01-10T00:00:00.000Z',
    },
  },
  {
    name: 'a German deck: Windows-1252, semicolons, decimal comma, dates with points',
    bytes: windows1252(
      [
        'Ziel;Vorwahl;Preis/Min;Taktung;Gültig ab',
        'Österreich;0043;0,0150 €;60/1;15.01.2026',
        'Österreich Mobil;0043660;0,1250 €;30/10;15.01.2026',
        'Schweiz;0041;0,0210 €;60/1;15.01.2026',
      ].join('\r\n'),
    ),
    said: { time_zone: 'Europe/Berlin' },
    rates: { 41: '0.021', 43: '0.015', 43660: '0.125' },
    first: { description: 'Schweiz', effective_from: '2026-01-14T23:00:00.000Z' },
  },
  {
    name: 'a deck of Excel: sep=, UTF-8 with BOM, digits kept as ="…"',
    bytes: Buffer.from(
      '\uFEFFsep=;\r\nCode;Country;Rate per minute\r\n="0033";France;0.004\r\n="00336";France Mobile;0.02\r\n',
    ),
    rates: { 33: '0.004', 336: '0.02' },
  },
  {
    name: 'a text of a spreadsheet: UTF-16 with tabs',
    bytes: Buffer.concat([
      Buffer.from([0xff, 0xfe]),
      Buffer.from(
        'Prefix\tDestination\tPrice\n+39\tItalia\t0.01\n+39 3\tItalia – cellulari\t0.03\n',
        'utf16le',
      ),
    ]),
    rates: { 39: '0.01', 393: '0.03' },
    first: { description: 'Italia' },
  },
  {
    name: 'a deck in UTF-16 of the other order, with bars',
    bytes: utf16be(
      "Destino|Prefijo|Precio|Setup\nEspaña|'34|0,0050|0,01\nEspaña móvil|'346|0,0250|0,01\n",
    ),
    rates: { 34: '0.005', 346: '0.025' },
    first: { description: 'España', connect_fee: 0.01 },
  },
  {
    name: 'country code and area codes in two columns, lists and ranges in one cell',
    bytes: Buffer.from(
      [
        'Country,Country Code,Area Code,Rate',
        'UK proper,44,,0.006',
        'UK mobile,44,"7400-7409, 7500",0.02',
        'UK premium,44,"870;871",0.10',
      ].join('\n'),
    ),
    rates: { 44: '0.006', 44740: '0.02', 447500: '0.02', 44870: '0.1', 44871: '0.1' },
  },
  {
    name: 'ranges and thousands marks',
    bytes: Buffer.from(
      [
        'Code;Destination;Rate (COP)',
        '57;Colombia;1.250,50',
        '573-574;Colombia mobile;2.000',
        '4479200-4479299;UK mobile;12.345,125',
      ].join('\n'),
    ),
    said: { decimal: ',', thousands: '.' },
    rates: { 44792: '12345.125', 57: '1250.5', 573: '2000', 574: '2000' },
  },
  {
    name: 'a North American deck: first and next interval, dates of the month first',
    bytes: Buffer.from(
      [
        'NPANXX,Interval 1,Interval N,Interstate,Effective Date',
        '1201200,6,6,0.00125,02/15/2026',
        '1201201,6,6,0.0031,02/15/2026',
      ].join('\n'),
    ),
    rates: { 1201200: '0.00125', 1201201: '0.0031' },
    first: { first_increment: 6, increment: 6, effective_from: '2026-02-15T00:00:00.000Z' },
  },
  {
    name: 'a workbook with a title, numbers and dates',
    bytes: workbook([
      ['Wholesale price list', null, null, null],
      [null, null, null, null],
      ['Destination', 'Code', 'Price', 'Valid from'],
      ['Poland', 48, 0.0125, new Date('2026-01-20T00:00:00Z')],
      ['Poland Mobile', '4850, 4851', 0.1 + 0.2, new Date('2026-01-20T00:00:00Z')],
    ]),
    rates: { 48: '0.0125', 4850: '0.3', 4851: '0.3' },
    first: { description: 'Poland', effective_from: '2026-01-20T00:00:00.000Z' },
  },
  {
    name: 'prices with more than six decimals, and a blocked destination',
    bytes: Buffer.from(
      [
        'Destination,Prefix,Rate USD/min,Blocked,Valid From',
        'Japan,81,0.01234567,no,3-Feb-2026',
        'Japan Mobile,8190,0.1000000,no,3-Feb-2026',
        'Inmarsat,870,,yes,3-Feb-2026',
      ].join('\n'),
    ),
    said: { more_decimals: 'up' },
    rates: { 81: '0.012346', 8190: '0.1', 870: '0' },
    first: { effective_from: '2026-02-03T00:00:00.000Z' },
  },
]
