/* huffman.h - the code of HPACK's strings (RFC 7541 appendix B), in the order of its codes: X(symbol, code,
 * bits). Not here: EOS, which no string may have (5.2). */
#ifndef GATEWAY_HTTP_HUFFMAN_H
#define GATEWAY_HTTP_HUFFMAN_H

/* clang-format off */
/* Codes of at most 8 bits: digits, letters and what else is frequent. */
#define HUFFMAN_SHORT(X) \
	X(48, 0x0, 5) X(49, 0x1, 5) X(50, 0x2, 5) X(97, 0x3, 5) X(99, 0x4, 5) \
	X(101, 0x5, 5) X(105, 0x6, 5) X(111, 0x7, 5) X(115, 0x8, 5) X(116, 0x9, 5) \
	X(32, 0x14, 6) X(37, 0x15, 6) X(45, 0x16, 6) X(46, 0x17, 6) X(47, 0x18, 6) \
	X(51, 0x19, 6) X(52, 0x1a, 6) X(53, 0x1b, 6) X(54, 0x1c, 6) X(55, 0x1d, 6) \
	X(56, 0x1e, 6) X(57, 0x1f, 6) X(61, 0x20, 6) X(65, 0x21, 6) X(95, 0x22, 6) \
	X(98, 0x23, 6) X(100, 0x24, 6) X(102, 0x25, 6) X(103, 0x26, 6) X(104, 0x27, 6) \
	X(108, 0x28, 6) X(109, 0x29, 6) X(110, 0x2a, 6) X(112, 0x2b, 6) X(114, 0x2c, 6) \
	X(117, 0x2d, 6) X(58, 0x5c, 7) X(66, 0x5d, 7) X(67, 0x5e, 7) X(68, 0x5f, 7) \
	X(69, 0x60, 7) X(70, 0x61, 7) X(71, 0x62, 7) X(72, 0x63, 7) X(73, 0x64, 7) \
	X(74, 0x65, 7) X(75, 0x66, 7) X(76, 0x67, 7) X(77, 0x68, 7) X(78, 0x69, 7) \
	X(79, 0x6a, 7) X(80, 0x6b, 7) X(81, 0x6c, 7) X(82, 0x6d, 7) X(83, 0x6e, 7) \
	X(84, 0x6f, 7) X(85, 0x70, 7) X(86, 0x71, 7) X(87, 0x72, 7) X(89, 0x73, 7) \
	X(106, 0x74, 7) X(107, 0x75, 7) X(113, 0x76, 7) X(118, 0x77, 7) X(119, 0x78, 7) \
	X(120, 0x79, 7) X(121, 0x7a, 7) X(122, 0x7b, 7) X(38, 0xf8, 8) X(42, 0xf9, 8) \
	X(44, 0xfa, 8) X(59, 0xfb, 8) X(88, 0xfc, 8) X(90, 0xfd, 8)

/* The others. */
#define HUFFMAN_LONG(X) \
	X(33, 0x3f8, 10) X(34, 0x3f9, 10) X(40, 0x3fa, 10) X(41, 0x3fb, 10) \
	X(63, 0x3fc, 10) X(39, 0x7fa, 11) X(43, 0x7fb, 11) X(124, 0x7fc, 11) \
	X(35, 0xffa, 12) X(62, 0xffb, 12) X(0, 0x1ff8, 13) X(36, 0x1ff9, 13) \
	X(64, 0x1ffa, 13) X(91, 0x1ffb, 13) X(93, 0x1ffc, 13) X(126, 0x1ffd, 13) \
	X(94, 0x3ffc, 14) X(125, 0x3ffd, 14) X(60, 0x7ffc, 15) X(96, 0x7ffd, 15) \
	X(123, 0x7ffe, 15) X(92, 0x7fff0, 19) X(195, 0x7fff1, 19) X(208, 0x7fff2, 19) \
	X(128, 0xfffe6, 20) X(130, 0xfffe7, 20) X(131, 0xfffe8, 20) X(162, 0xfffe9, 20) \
	X(184, 0xfffea, 20) X(194, 0xfffeb, 20) X(224, 0xfffec, 20) X(226, 0xfffed, 20) \
	X(153, 0x1fffdc, 21) X(161, 0x1fffdd, 21) X(167, 0x1fffde, 21) X(172, 0x1fffdf, 21) \
	X(176, 0x1fffe0, 21) X(177, 0x1fffe1, 21) X(179, 0x1fffe2, 21) X(209, 0x1fffe3, 21) \
	X(216, 0x1fffe4, 21) X(217, 0x1fffe5, 21) X(227, 0x1fffe6, 21) X(229, 0x1fffe7, 21) \
	X(230, 0x1fffe8, 21) X(129, 0x3fffd2, 22) X(132, 0x3fffd3, 22) X(133, 0x3fffd4, 22) \
	X(134, 0x3fffd5, 22) X(136, 0x3fffd6, 22) X(146, 0x3fffd7, 22) X(154, 0x3fffd8, 22) \
	X(156, 0x3fffd9, 22) X(160, 0x3fffda, 22) X(163, 0x3fffdb, 22) X(164, 0x3fffdc, 22) \
	X(169, 0x3fffdd, 22) X(170, 0x3fffde, 22) X(173, 0x3fffdf, 22) X(178, 0x3fffe0, 22) \
	X(181, 0x3fffe1, 22) X(185, 0x3fffe2, 22) X(186, 0x3fffe3, 22) X(187, 0x3fffe4, 22) \
	X(189, 0x3fffe5, 22) X(190, 0x3fffe6, 22) X(196, 0x3fffe7, 22) X(198, 0x3fffe8, 22) \
	X(228, 0x3fffe9, 22) X(232, 0x3fffea, 22) X(233, 0x3fffeb, 22) X(1, 0x7fffd8, 23) \
	X(135, 0x7fffd9, 23) X(137, 0x7fffda, 23) X(138, 0x7fffdb, 23) X(139, 0x7fffdc, 23) \
	X(140, 0x7fffdd, 23) X(141, 0x7fffde, 23) X(143, 0x7fffdf, 23) X(147, 0x7fffe0, 23) \
	X(149, 0x7fffe1, 23) X(150, 0x7fffe2, 23) X(151, 0x7fffe3, 23) X(152, 0x7fffe4, 23) \
	X(155, 0x7fffe5, 23) X(157, 0x7fffe6, 23) X(158, 0x7fffe7, 23) X(165, 0x7fffe8, 23) \
	X(166, 0x7fffe9, 23) X(168, 0x7fffea, 23) X(174, 0x7fffeb, 23) X(175, 0x7fffec, 23) \
	X(180, 0x7fffed, 23) X(182, 0x7fffee, 23) X(183, 0x7fffef, 23) X(188, 0x7ffff0, 23) \
	X(191, 0x7ffff1, 23) X(197, 0x7ffff2, 23) X(231, 0x7ffff3, 23) X(239, 0x7ffff4, 23) \
	X(9, 0xffffea, 24) X(142, 0xffffeb, 24) X(144, 0xffffec, 24) X(145, 0xffffed, 24) \
	X(148, 0xffffee, 24) X(159, 0xffffef, 24) X(171, 0xfffff0, 24) X(206, 0xfffff1, 24) \
	X(215, 0xfffff2, 24) X(225, 0xfffff3, 24) X(236, 0xfffff4, 24) X(237, 0xfffff5, 24) \
	X(199, 0x1ffffec, 25) X(207, 0x1ffffed, 25) X(234, 0x1ffffee, 25) X(235, 0x1ffffef, 25) \
	X(192, 0x3ffffe0, 26) X(193, 0x3ffffe1, 26) X(200, 0x3ffffe2, 26) X(201, 0x3ffffe3, 26) \
	X(202, 0x3ffffe4, 26) X(205, 0x3ffffe5, 26) X(210, 0x3ffffe6, 26) X(213, 0x3ffffe7, 26) \
	X(218, 0x3ffffe8, 26) X(219, 0x3ffffe9, 26) X(238, 0x3ffffea, 26) X(240, 0x3ffffeb, 26) \
	X(242, 0x3ffffec, 26) X(243, 0x3ffffed, 26) X(255, 0x3ffffee, 26) X(203, 0x7ffffde, 27) \
	X(204, 0x7ffffdf, 27) X(211, 0x7ffffe0, 27) X(212, 0x7ffffe1, 27) X(214, 0x7ffffe2, 27) \
	X(221, 0x7ffffe3, 27) X(222, 0x7ffffe4, 27) X(223, 0x7ffffe5, 27) X(241, 0x7ffffe6, 27) \
	X(244, 0x7ffffe7, 27) X(245, 0x7ffffe8, 27) X(246, 0x7ffffe9, 27) X(247, 0x7ffffea, 27) \
	X(248, 0x7ffffeb, 27) X(250, 0x7ffffec, 27) X(251, 0x7ffffed, 27) X(252, 0x7ffffee, 27) \
	X(253, 0x7ffffef, 27) X(254, 0x7fffff0, 27) X(2, 0xfffffe2, 28) X(3, 0xfffffe3, 28) \
	X(4, 0xfffffe4, 28) X(5, 0xfffffe5, 28) X(6, 0xfffffe6, 28) X(7, 0xfffffe7, 28) \
	X(8, 0xfffffe8, 28) X(11, 0xfffffe9, 28) X(12, 0xfffffea, 28) X(14, 0xfffffeb, 28) \
	X(15, 0xfffffec, 28) X(16, 0xfffffed, 28) X(17, 0xfffffee, 28) X(18, 0xfffffef, 28) \
	X(19, 0xffffff0, 28) X(20, 0xffffff1, 28) X(21, 0xffffff2, 28) X(23, 0xffffff3, 28) \
	X(24, 0xffffff4, 28) X(25, 0xffffff5, 28) X(26, 0xffffff6, 28) X(27, 0xffffff7, 28) \
	X(28, 0xffffff8, 28) X(29, 0xffffff9, 28) X(30, 0xffffffa, 28) X(31, 0xffffffb, 28) \
	X(127, 0xffffffc, 28) X(220, 0xffffffd, 28) X(249, 0xffffffe, 28) X(10, 0x3ffffffc, 30) \
	X(13, 0x3ffffffd, 30) X(22, 0x3ffffffe, 30)

/* Their lengths: X(bits, the first code, how many there are). */
#define HUFFMAN_LENGTHS(X) \
	X(10, 0x3f8, 5) X(11, 0x7fa, 3) X(12, 0xffa, 2) X(13, 0x1ff8, 6) X(14, 0x3ffc, 2) \
	X(15, 0x7ffc, 3) X(19, 0x7fff0, 3) X(20, 0xfffe6, 8) X(21, 0x1fffdc, 13) X(22, 0x3fffd2, 26) \
	X(23, 0x7fffd8, 29) X(24, 0xffffea, 12) X(25, 0x1ffffec, 4) X(26, 0x3ffffe0, 15) X(27, 0x7ffffde, 19) \
	X(28, 0xfffffe2, 29) X(30, 0x3ffffffc, 3)
/* clang-format on */

#endif
